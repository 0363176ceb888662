<?php

declare(strict_types=1);

namespace Dq\Concerns;

use Dq\Options;
use Dq\Reply;

/** What operators do, and programs that change or look at what they have pushed. */
trait Operates
{
    /**
     * Removes messages. Returns the state that each was in, null for those that were not there.
     *
     * @return list<string|null>
     */
    public function cancel(string $queue, string ...$ids): array
    {
        return $this->ask('DQ.CANCEL', $queue, array_values($ids));
    }

    /**
     * Changes the due time or the priority of a message. Returns whether it was delayed or ready.
     *
     * @param mixed ...$options `delay`, `at`, `priority`: those of DQ.RESCHEDULE
     */
    public function reschedule(string $queue, string $id, mixed ...$options): bool
    {
        return (bool) $this->ask('DQ.RESCHEDULE', $queue, [
            $id, ...Options::words($options, ['delay', 'at', 'priority']),
        ]);
    }

    /**
     * Makes delayed messages due now, and returns how many.
     *
     * @param mixed ...$options `count`, `until`: those of DQ.PROMOTE
     */
    public function promote(string $queue, mixed ...$options): int
    {
        return (int) $this->ask('DQ.PROMOTE', $queue, Options::words($options, ['count', 'until']));
    }

    /**
     * Makes dead messages live again, and returns how many.
     *
     * @param list<string>|null $ids       those of these ids; null: all to which the options apply
     * @param mixed             ...$options `count`, `delay`, `older` in seconds, `reason`: those of DQ.REDRIVE
     */
    public function redrive(string $queue, ?array $ids = null, mixed ...$options): int
    {
        if ($ids === []) {
            return 0;
        }
        $named = $ids === null ? [] : ['IDS', (string) count($ids), ...array_values($ids)];
        $words = Options::words($options, ['count', 'delay', 'older', 'reason']);
        return (int) $this->ask('DQ.REDRIVE', $queue, [...$named, ...$words]);
    }

    /**
     * Removes messages, and returns how many. Schedules stay unless `recurring` is true.
     *
     * @param list<string> $states     only those in these states
     * @param mixed        ...$options `count`, `group`, `recurring`, `older` in seconds: those of DQ.PURGE
     */
    public function purge(string $queue, array $states = [], mixed ...$options): int
    {
        $words = Options::words($options, ['count', 'group', 'recurring', 'older']);
        return (int) $this->ask('DQ.PURGE', $queue, [...array_values($states), ...$words]);
    }

    /** Makes a message dead. Returns whether it was live. */
    public function bury(string $queue, string $id, ?string $error = null): bool
    {
        return (bool) $this->ask('DQ.BURY', $queue, [$id, ...Options::words(['error' => $error], ['error'])]);
    }

    /** Takes back the messages of a consumer and returns how many. `count` and `noCount`: see DQ.RELEASE. */
    public function release(string $queue, string $consumer, mixed ...$options): int
    {
        $words = Options::words($options, ['count', 'noCount']);
        return (int) $this->ask('DQ.RELEASE', $queue, [$consumer, ...$words]);
    }

    /**
     * Returns a message with the fields of DQ.GET, or null.
     *
     * @return array<string, mixed>|null
     */
    public function get(string $queue, string $id): ?array
    {
        return Reply::map($this->ask('DQ.GET', $queue, [$id])) ?: null;
    }

    /**
     * Returns the first messages of a state in the order in which they leave it; dead and done ones newest first.
     *
     * @param mixed ...$options `group`
     *
     * @return list<array<string, mixed>>
     */
    public function peek(string $queue, string $state = 'ready', int $count = 1, mixed ...$options): array
    {
        $words = [$state, 'COUNT', (string) $count, ...Options::words($options, ['group'])];
        return array_map(Reply::map(...), $this->ask('DQ.PEEK', $queue, $words) ?? []);
    }

    /**
     * Returns the newest dead messages.
     *
     * @return list<array<string, mixed>>
     */
    public function dead(string $queue, int $count = 100): array
    {
        return $this->peek($queue, 'dead', $count);
    }

    /**
     * Walks through the messages of a queue. Returns the next cursor, '0' at the end, and messages as get() does.
     *
     * @param mixed ...$options `state`, `count`, `recurring`, `sequence`: those of DQ.SCAN
     *
     * @return array{string, list<array<string, mixed>>}
     */
    public function scan(string $queue, string $cursor = '0', mixed ...$options): array
    {
        $words = Options::words($options, ['state', 'count', 'recurring', 'sequence']);
        [$next, $messages] = $this->ask('DQ.SCAN', $queue, [$cursor, ...$words]);
        return [$next, array_map(Reply::map(...), $messages)];
    }

    /** Returns the number of messages in a state, or of all that are neither dead nor done; of a `group` only. */
    public function len(string $queue, ?string $state = null, mixed ...$options): int
    {
        $words = [...($state === null ? [] : [$state]), ...Options::words($options, ['group'])];
        return (int) $this->ask('DQ.LEN', $queue, $words);
    }

    /**
     * Returns counts, settings and totals, as DQ.INFO names them, or null if the queue does not exist.
     *
     * @return array<string, mixed>|null
     */
    public function info(string $queue): ?array
    {
        return Reply::map($this->ask('DQ.INFO', $queue)) ?: null;
    }

    /**
     * Returns how late messages are delivered and how long consumers take, as DQ.STATS names it, or null.
     *
     * @return array<string, mixed>|null
     */
    public function stats(string $queue): ?array
    {
        return Reply::map($this->ask('DQ.STATS', $queue)) ?: null;
    }

    /**
     * Suspends a flow, `out` (delivery), `in` (new messages) or `all`, or the delivery of one group.
     *
     * @param int|float|\DateInterval|null $for for how many seconds; null: until resume()
     */
    public function pause(
        string $queue,
        string $flow = 'out',
        int|float|\DateInterval|null $for = null,
        ?string $group = null,
    ): void {
        $this->ask('DQ.PAUSE', $queue, [...self::flow($flow, $group), ...Options::words(['for' => $for], ['for'])]);
    }

    /** Resumes a flow, or the delivery of one group. Groups that are paused stay so. */
    public function resume(string $queue, string $flow = 'all', ?string $group = null): void
    {
        $this->ask('DQ.RESUME', $queue, self::flow($flow, $group));
    }

    /**
     * Creates the queue with these settings, or changes them if it exists. Programs call it when they start.
     *
     * @param mixed ...$settings those of DQ.CREATE in camel case, such as `maxLen`, `backoff: [1, 3600]`,
     *                           `rate: [5, 1]`, `forward: ['STREAM', 'target']`
     */
    public function declare(string $queue, mixed ...$settings): void
    {
        $this->ask('DQ.ALTER', $queue, ['MKQUEUE', ...Options::words($settings, Options::SETTINGS)]);
    }

    /** Creates the queue. It is an error if it exists with other settings. See declare(). */
    public function create(string $queue, mixed ...$settings): void
    {
        $this->ask('DQ.CREATE', $queue, Options::words($settings, Options::SETTINGS));
    }

    /** Changes settings. It is an error if the queue does not exist. See declare(). */
    public function alter(string $queue, mixed ...$settings): void
    {
        $this->ask('DQ.ALTER', $queue, Options::words($settings, Options::SETTINGS));
    }

    /** @return list<string> */
    private static function flow(string $flow, ?string $group): array
    {
        return $group === null ? [strtoupper($flow)] : ['GROUP', $group];
    }
}
