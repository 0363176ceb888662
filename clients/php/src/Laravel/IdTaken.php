<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Exception\DqException;

/** A payload was not pushed, because the queue has another job of its id. */
final class IdTaken extends DqException
{
}
