<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The queue holds a dead message of this id: replace, redrive or cancel it first. */
final class DeadId extends ServerError
{
}
