<?php

declare(strict_types=1);

namespace Dq\Exception;

/** What every exception of this package is, except for what a handler throws itself. */
class DqException extends \RuntimeException
{
}
