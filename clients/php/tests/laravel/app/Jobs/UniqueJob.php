<?php

declare(strict_types=1);

namespace App\Jobs;

use Illuminate\Contracts\Queue\ShouldBeUnique;

final class UniqueJob extends Job implements ShouldBeUnique
{
    public function uniqueId(): string
    {
        return $this->name;
    }
}
