<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The message that a caller waits for is dead. */
final class Failed extends DqException
{
}
