<?php

declare(strict_types=1);

namespace App\Jobs;

use DateTimeInterface;

/** A job that is tried until a time of day. */
final class DeadlineJob extends Job
{
    public function retryUntil(): DateTimeInterface
    {
        return now()->addSeconds(2);
    }
}
