<?php

declare(strict_types=1);

namespace App\Jobs;

use DateTimeInterface;

/** A job that is tried until a time of day. */
final class DeadlineJob extends Job
{
    /** How long it is tried, in seconds. */
    public int $seconds = 0;

    public function retryUntil(): DateTimeInterface
    {
        return now()->addSeconds($this->seconds);
    }
}
