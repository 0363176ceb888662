<?php

declare(strict_types=1);

namespace Dq\Laravel;

use UnitEnum;
use BackedEnum;

/** The method that `Illuminate\Bus\Queueable` has since Laravel 12. */
trait GroupOption
{
    /**
     * Jobs of one group run in the order of their pushes.
     *
     * @return $this
     */
    public function onGroup(UnitEnum|string|int $group): static
    {
        $name = $group instanceof BackedEnum ? $group->value : ($group instanceof UnitEnum ? $group->name : $group);
        return $this->choose('GROUP', (string) $name);
    }
}
