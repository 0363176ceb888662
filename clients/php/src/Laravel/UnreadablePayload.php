<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Queue\InvalidPayloadException;

/** The job of a message whose payload is none of Laravel's: it fails, so that backoff, tries and failed jobs apply. */
final class UnreadablePayload
{
    /**
     * @param mixed $data nothing
     * @throws InvalidPayloadException
     */
    public function call(DqJob $job, mixed $data): never
    {
        throw new InvalidPayloadException(sprintf(
            'The payload of the message [%s] of the queue [%s] is no JSON of a Laravel job.',
            $job->getJobId(),
            $job->getQueue()
        ));
    }
}
