<?php

declare(strict_types=1);

namespace App\Jobs;

use Illuminate\Contracts\Queue\ShouldBeUniqueUntilProcessing;

final class UniqueUntilProcessingJob extends Job implements ShouldBeUniqueUntilProcessing
{
    public function uniqueId(): string
    {
        return $this->name;
    }
}
