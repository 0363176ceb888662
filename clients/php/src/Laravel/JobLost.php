<?php

declare(strict_types=1);

namespace Dq\Laravel;

/**
 * Another worker may run this job as well, or it was cancelled or replaced while it ran: its lease ended before its
 * outcome arrived.
 */
final class JobLost
{
    public function __construct(public readonly string $connectionName, public readonly DqJob $job)
    {
    }
}
