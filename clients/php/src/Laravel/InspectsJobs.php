<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Reply;
use Illuminate\Queue\Jobs\InspectedJob;
use Illuminate\Support\Collection;
use UnitEnum;

/** The jobs of a queue, to look at: what every driver of Laravel has since version 13. */
trait InspectsJobs
{
    /**
     * @param UnitEnum|string|null $queue
     * @return Collection<int, InspectedJob>
     */
    public function pendingJobs($queue = null): Collection
    {
        return $this->jobsIn('ready', $queue);
    }

    /**
     * @param UnitEnum|string|null $queue
     * @return Collection<int, InspectedJob>
     */
    public function delayedJobs($queue = null): Collection
    {
        return $this->jobsIn('delayed', $queue);
    }

    /**
     * @param UnitEnum|string|null $queue
     * @return Collection<int, InspectedJob>
     */
    public function reservedJobs($queue = null): Collection
    {
        return $this->jobsIn('inflight', $queue);
    }

    /** @param UnitEnum|string|null $queue */
    private function jobsIn(string $state, $queue): Collection
    {
        $key = $this->key($queue);
        $count = (int) $this->link->call('DQ.LEN', $key, $state);
        $found = $count === 0 ? [] : $this->link->call('DQ.PEEK', $key, $state, 'COUNT', $count);
        return (new Collection($found ?: []))->map(function (array $one) use ($queue): InspectedJob {
            $message = Reply::map($one);
            $payload = is_array(json_decode($message['payload'], true)) ? $message['payload'] : '{}';
            return InspectedJob::fromPayload($payload, (int) $message['attempt'], $this->name($queue));
        });
    }
}
