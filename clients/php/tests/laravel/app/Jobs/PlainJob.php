<?php

declare(strict_types=1);

namespace App\Jobs;

use Illuminate\Contracts\Queue\ShouldQueue;

/** A job that knows nothing of dq. */
final class PlainJob implements ShouldQueue
{
    public string $priority = 'high';

    public function handle(): void
    {
    }
}
