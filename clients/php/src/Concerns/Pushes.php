<?php

declare(strict_types=1);

namespace Dq\Concerns;

use Dq\Clock;
use Dq\Exception\DeadId;
use Dq\Exception\Failed;
use Dq\Exception\NotKept;
use Dq\Exception\TimedOut;
use Dq\Options;
use Dq\Reply;

/** What producers do. */
trait Pushes
{
    /**
     * Adds a message and returns its id, or null if the queue holds a message of that `id`. If the connection breaks,
     * the push is sent again under the same id until it is answered, so that the message is made once.
     *
     * @param mixed ...$options `id`, `delay`, `at`, `priority`, `retries`, `lease`, `ttl`, `replace`, `maxWait`,
     *                          `later`, `retain`, `group`, `batch`, `headers`, and of a message with a past `attempt`,
     *                          `error`, `checkpoint`, `dead`, `reason`: those of DQ.PUSH
     */
    public function push(string $queue, string $payload, mixed ...$options): ?string
    {
        return $this->pushOne($queue, $payload, $options, $this->pushTimeout);
    }

    /**
     * Adds messages in one step, all or none, and returns for each what push() does, or a DeadId.
     *
     * @param list<string> $payloads
     * @param mixed        ...$options those of push(), and `ids`, an id for each
     *
     * @return list<string|DeadId|null>
     */
    public function pushMany(string $queue, array $payloads, mixed ...$options): array
    {
        if ($payloads === []) {
            return [];
        }
        $ids = $options['ids'] ?? null;
        unset($options['ids']);
        if ($ids !== null && count($ids) !== count($payloads)) {
            throw new \InvalidArgumentException(count($payloads) . ' payloads do not go with ' . count($ids) . ' ids');
        }
        $made = $ids === null && $this->pushTimeout > 0;
        if ($made) {
            $ids = array_map(self::newId(...), $payloads);
        }
        $words = [(string) count($payloads), ...array_values($payloads)];
        if ($ids !== null) {
            array_push($words, 'IDS', ...array_map('strval', array_values($ids)));
        }
        array_push($words, ...Options::words($options, array_diff(Options::PUSH, ['id'])));
        try {
            [$replies, $mayBeThere] = $this->repeat('DQ.MPUSH', $queue, $words, $this->pushTimeout);
        } catch (DeadId) {
            return $this->findDead($queue, array_values($ids));
        }
        if (!$made && !$mayBeThere) {
            return $replies;
        }
        // A null means that an earlier copy has arrived.
        $there = static fn (mixed $reply, string|int $id): mixed => $reply ?? (string) $id;
        return array_map($there, $replies, array_values($ids ?? array_fill(0, count($replies), '')));
    }

    /**
     * Pushes a message and returns the result of its handler, null if it has none. Waits for at most so many seconds.
     *
     * @param float $timeout in seconds
     * @param mixed ...$options those of push()
     *
     * @throws Failed   if the message becomes dead
     * @throws NotKept  if it is removed, or its result was too long or no JSON
     * @throws TimedOut if it has not ended in time
     */
    public function pushAndWait(string $queue, string $payload, float $timeout, mixed ...$options): ?string
    {
        $end = Clock::now() + $timeout;
        // The result is kept a minute longer than somebody waits for it.
        $options['retain'] ??= $timeout + 60;
        $id = $this->pushOne($queue, $payload, $options, min($this->pushTimeout, $timeout)) ?? (string) $options['id'];
        while (true) {
            $left = max(0.001, $end - Clock::now());
            $block = min(2.0, $left); // A wait is made of shorter ones, which survive a connection that breaks.
            $words = [$id, ...Options::words(['block' => $block], ['block'])];
            [$reply] = $this->repeat('DQ.AWAIT', $queue, $words, $left + 1, $block);
            [$reply] = $reply === null ? $this->repeat('DQ.GET', $queue, [$id], $left + 1) : [$reply];
            $message = Reply::map($reply);
            switch ($message['state'] ?? 'gone') {
                case 'gone':
                    throw new NotKept("the message $id is gone: it was removed, or completed without being kept");
                case 'dead':
                    $reason = $message['error'] ?? $message['reason'] ?? '';
                    throw new Failed("the message $id is dead: $reason");
                case 'done':
                    $result = $message['result'] ?? null;
                    return $result !== '' ? $result
                        : throw new NotKept("the message $id is done, but its result could not be kept");
            }
            if (Clock::now() >= $end) {
                throw new TimedOut("the message $id is still {$message['state']}");
            }
        }
    }

    /**
     * Declares a recurring message and returns `created`, `changed` or `unchanged`.
     *
     * @param mixed ...$options `every` with `offset`, or `cron` with `tz`; `at`, `until`, `times`, `priority`,
     *                          `retries`, `lease`, `ttl`, `group`, `headers`: those of DQ.SCHEDULE
     */
    public function schedule(string $queue, string $id, string $payload, mixed ...$options): string
    {
        return $this->ask('DQ.SCHEDULE', $queue, [$id, $payload, ...Options::words($options, Options::SCHEDULE)]);
    }

    /**
     * Sets the message that follows once all messages that were pushed with this `batch` have ended, and returns how
     * many are left. This is sent once, because the batch may have ended when a second command came.
     *
     * @param mixed ...$options `id`, `delay`, `priority`, `retries`, `lease`, `group`, `headers`: those of DQ.BATCH
     */
    public function follow(string $queue, string $batch, string $payload, mixed ...$options): int
    {
        $words = [$batch, 'THEN', $payload, ...Options::words($options, Options::FOLLOW)];
        return (int) $this->ask('DQ.BATCH', $queue, $words);
    }

    /**
     * Returns the progress of a batch, as DQ.BATCHINFO names it, or null if there is none.
     *
     * @return array<string, mixed>|null
     */
    public function batchInfo(string $queue, string $batch): ?array
    {
        return Reply::map($this->ask('DQ.BATCHINFO', $queue, [$batch])) ?: null;
    }

    /** Removes the messages of a batch that are not dead, and what follows. Returns how many were removed. */
    public function cancelBatch(string $queue, string $batch): int
    {
        return (int) $this->ask('DQ.BATCH', $queue, [$batch, 'CANCEL']);
    }

    /**
     * @param array<string, mixed> $options
     * @param float                $seconds for how long it is repeated
     */
    private function pushOne(string $queue, string $payload, array $options, float $seconds): ?string
    {
        $made = $this->pushTimeout > 0 && ($options['id'] ?? null) === null;
        if ($made) {
            $options['id'] = self::newId();
        }
        $words = Options::words($options, Options::PUSH);
        [$id, $mayBeThere] = $this->repeat('DQ.PUSH', $queue, [$payload, ...$words], $seconds);
        // A null that answers a repeated push, or an id that nobody else has, means that the message is there.
        return $id ?? ($made || $mayBeThere ? (string) $options['id'] : null);
    }

    /**
     * The extension redis throws the first error of a list instead of returning the list: finds out which messages were
     * dead. Those that the queue held already cannot be told from those that were added.
     *
     * @param list<string> $ids
     *
     * @return list<string|DeadId>
     */
    private function findDead(string $queue, array $ids): array
    {
        $find = function (string $id) use ($queue): string|DeadId {
            $isDead = ($this->get($queue, $id)['state'] ?? null) === 'dead';
            return $isDead ? new DeadId("DEADID message $id is dead (DQ.MPUSH $queue)", 'DEADID') : $id;
        };
        return array_map($find, $ids);
    }

    private static function newId(): string
    {
        return bin2hex(random_bytes(16));
    }
}
