<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The queue is closed for producers. */
final class QueueClosed extends ServerError
{
}
