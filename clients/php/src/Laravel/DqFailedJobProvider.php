<?php

declare(strict_types=1);

namespace Dq\Laravel;

use DateTimeInterface;
use Illuminate\Queue\Failed\FailedJobProviderInterface;
use Illuminate\Queue\Failed\PrunableFailedJobProvider;
use Illuminate\Support\Carbon;
use Psr\Log\LoggerInterface;
use Throwable;

/** A failed job is a dead message of its queue, so that it is stored in the step in which it fails. */
class DqFailedJobProvider implements FailedJobProviderInterface, PrunableFailedJobProvider
{
    /**
     * @param array<string, DqQueue> $connections one connection of the driver dq for each prefix and server, by name
     * @param list<string> $names of all connections of the driver dq
     * @param list<string> $queues the names of the queues in which failed jobs are looked for
     */
    public function __construct(
        private array $connections,
        private array $names,
        private array $queues,
        private LoggerInterface $log
    ) {
    }

    /**
     * @param string $connection
     * @param string $queue
     * @param string $payload
     * @param Throwable $exception
     * @return string|null the id
     */
    public function log($connection, $queue, $payload, $exception)
    {
        if (in_array($connection, $this->names, true)) {
            if (! in_array($queue, $this->queues, true)) {
                $this->log->warning("Failed jobs of the queue [{$queue}] are kept by the server, but are not listed: "
                    . "name it in 'queues' of 'failed' in config/queue.php.");
            }
            $decoded = json_decode($payload, true); // Its message is dead already.
            return is_array($decoded) ? $decoded['id'] ?? $decoded['uuid'] ?? null : null;
        }
        $error = mb_strcut(get_class($exception) . ': ' . $exception->getMessage(), 0, 1024, 'UTF-8');
        return $this->first()->deadMessages()->store($connection, $this->queues[0], $queue, $payload, $error);
    }

    /**
     * @param string|null $queue
     * @return list<string>
     */
    public function ids($queue = null)
    {
        $all = array_filter($this->all(), fn (object $job): bool => $queue === null || $job->queue === $queue);
        return array_values(array_map(fn (object $job): string => $job->id, $all));
    }

    /** @return list<object> */
    public function all()
    {
        $found = [];
        foreach ($this->places() as [$connection, $dead, $queue]) {
            array_push($found, ...$dead->all($connection, $queue));
        }
        return $found;
    }

    /**
     * @param string $id
     * @return object|null
     */
    public function find($id)
    {
        foreach ($this->places() as [$connection, $dead, $queue]) {
            if (($record = $dead->find($connection, $queue, (string) $id)) !== null) {
                return $record;
            }
        }
        return $this->findByUuid((string) $id);
    }

    /**
     * @param string $id
     * @return bool
     */
    public function forget($id)
    {
        if ($this->forgetMessage((string) $id)) {
            return true;
        }
        $record = $this->findByUuid((string) $id);
        return $record !== null && $this->forgetMessage($record->id);
    }

    /**
     * @param int|string|null $hours how long ago a job must have failed; null: all
     * @return void
     */
    public function flush($hours = null)
    {
        $before = $hours === null ? null : Carbon::now()->subHours((int) $hours);
        foreach ($this->places() as [, $dead, $queue]) {
            $dead->prune($queue, $before);
        }
    }

    /** @return int how many were removed */
    public function prune(DateTimeInterface $before)
    {
        $removed = 0;
        foreach ($this->places() as [, $dead, $queue]) {
            $removed += $dead->prune($queue, $before);
        }
        return $removed;
    }

    /**
     * @param string|null $connection
     * @param string|null $queue
     */
    public function count($connection = null, $queue = null): int
    {
        $count = 0;
        foreach ($this->places() as [$name, $dead, $place]) {
            if (($connection ?? $name) === $name && ($queue ?? $place) === $place) {
                $count += $dead->count($place);
            }
        }
        return $count;
    }

    private function forgetMessage(string $id): bool
    {
        foreach ($this->places() as [, $dead, $queue]) {
            if ($dead->forget($queue, $id)) {
                return true;
            }
        }
        return false;
    }

    /** A batch knows its failed jobs by the uuid that Laravel gave them, also those with an id of their own. */
    private function findByUuid(string $uuid): ?object
    {
        foreach ($this->all() as $record) {
            if ((json_decode($record->payload, true)['uuid'] ?? null) === $uuid) {
                return $record;
            }
        }
        return null;
    }

    private function first(): DqQueue
    {
        return $this->connections[array_key_first($this->connections)];
    }

    /** @return iterable<array{string, DeadMessages, string}> the connection, its dead messages, and the queue */
    private function places(): iterable
    {
        foreach ($this->connections as $name => $connection) {
            foreach ($this->queues as $queue) {
                yield [$name, $connection->deadMessages(), $queue];
            }
        }
    }
}
