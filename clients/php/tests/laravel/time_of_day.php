<?php

/** The driver does not ask for the time of day, which can be set: what it waits for would come late, or never. */

declare(strict_types=1);

namespace Dq\Laravel;

use LogicException;

function microtime(): float
{
    throw new LogicException('the time of day can be set');
}
