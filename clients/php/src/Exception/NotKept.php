<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The message that a caller waits for is gone, or its result was not kept. */
final class NotKept extends DqException
{
}
