<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The server does not know the commands of dq. */
final class NoModule extends ServerError
{
}
