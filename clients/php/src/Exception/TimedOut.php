<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The message that a caller waits for has not ended in time. */
final class TimedOut extends DqException
{
}
