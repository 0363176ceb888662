<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Closure;
use DateTimeInterface;
use Dq\Reply;
use Illuminate\Support\Carbon;

/** The dead messages of the queues of a connection, as Laravel's records of failed jobs. */
final class DeadMessages
{
    /** The headers of a job that failed on another connection and is only stored here. */
    private const CONNECTION = 'laravel-connection';
    private const QUEUE = 'laravel-queue';

    /** For how long a failed job of another connection is sent, in seconds: it has left its queue already. */
    private const PATIENCE = 30.0;

    /** @var array<string, true> the ids of dead messages that this process has pushed again */
    private array $running = [];

    /** @param Closure(string): string $key the key of a queue */
    public function __construct(private Link $link, private Closure $key)
    {
    }

    /** @return list<object> newest first */
    public function all(string $connection, string $queue): array
    {
        $key = ($this->key)($queue);
        $count = (int) $this->link->call('DQ.LEN', $key, 'dead');
        $found = $count === 0 ? [] : $this->link->call('DQ.PEEK', $key, 'dead', 'COUNT', $count);
        return array_map(fn (array $one): object => $this->record($connection, $queue, Reply::map($one)), $found ?: []);
    }

    public function count(string $queue): int
    {
        return (int) $this->link->call('DQ.LEN', ($this->key)($queue), 'dead');
    }

    public function find(string $connection, string $queue, string $id): ?object
    {
        $message = Reply::map($this->link->call('DQ.GET', ($this->key)($queue), $id) ?: []);
        return ($message['state'] ?? null) === 'dead' ? $this->record($connection, $queue, $message) : null;
    }

    /** Removes a dead message, unless this process has just put a live one in its place. */
    public function forget(string $queue, string $id): bool
    {
        if (isset($this->running[$id])) {
            unset($this->running[$id]); // It may have failed again already, and must not be lost.
            return true;
        }
        $key = ($this->key)($queue);
        $message = Reply::map($this->link->call('DQ.GET', $key, $id) ?: []);
        return ($message['state'] ?? null) === 'dead' && $this->link->call('DQ.CANCEL', $key, $id)[0] !== null;
    }

    /** @return int how many were removed */
    public function prune(string $queue, ?DateTimeInterface $before): int
    {
        $older = $before === null
            ? []
            : ['OLDER', max(0, (int) Carbon::now()->format('Uv') - (int) $before->format('Uv'))];
        return (int) $this->link->call('DQ.PURGE', ($this->key)($queue), 'dead', ...$older);
    }

    /** Stores a job that failed on a connection of another driver. */
    public function store(string $connection, string $queue, string $jobsQueue, string $payload, string $error): ?string
    {
        $id = json_decode($payload, true)['uuid'] ?? null;
        $words = ['DQ.PUSH', ($this->key)($queue), $payload, 'DEAD', 'ERROR', $error, 'RETRIES', -1];
        array_push($words, 'HEADERS', 2, self::CONNECTION, $connection, self::QUEUE, $jobsQueue);
        return $id === null
            ? $this->link->call(...$words)
            : $this->link->repeat(self::PATIENCE, [...$words, 'ID', $id, 'REPLACE']);
    }

    /** A live message has taken the place of that of this id, so that nothing is left to forget. */
    public function runsAgain(string $id): void
    {
        $this->running[$id] = true;
    }

    /** @param array<string, mixed> $message */
    private function record(string $connection, string $queue, array $message): object
    {
        $headers = Reply::map($message['headers'] ?? []);
        $elsewhere = isset($headers[self::CONNECTION]);
        $died = Carbon::createFromTimestampMs($message['died'] ?? $message['due']);
        return (object) [
            'id' => $message['id'],
            'connection' => $headers[self::CONNECTION] ?? $connection,
            'queue' => $headers[self::QUEUE] ?? $queue,
            'payload' => $elsewhere ? $message['payload'] : $this->withId($message['payload'], $message['id']),
            'exception' => $message['error'] ?? '',
            'failed_at' => $died->setTimezone(date_default_timezone_get())->toDateTimeString(),
        ];
    }

    /** The payload with the id of its message, so that a retry takes the place of that one. */
    private function withId(string $payload, string $id): string
    {
        $decoded = json_decode($payload, true);
        if (! is_array($decoded) || ($decoded['id'] ?? $decoded['uuid'] ?? null) === $id) {
            return $payload;
        }
        return json_encode(array_merge($decoded, ['id' => $id]), JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
    }
}
