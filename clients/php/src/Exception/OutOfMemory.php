<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The server has reached its maxmemory. */
final class OutOfMemory extends ServerError
{
}
