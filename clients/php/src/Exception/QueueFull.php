<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The queue has no room under its MAXLEN. */
final class QueueFull extends ServerError
{
}
