<?php

declare(strict_types=1);

namespace Dq\Concerns;

use Dq\Message;
use Dq\Options;

/** What consumers do. A Worker does all of this by itself. Nothing here is sent twice. */
trait Consumes
{
    /**
     * Takes messages that are due.
     *
     * @param mixed ...$options `count`, `block` in seconds, `lease`, `min`, `linger`, `as`, `noAck`: those of DQ.POP
     *
     * @return list<Message>
     */
    public function pop(string $queue, mixed ...$options): array
    {
        $words = [...Options::words($options, Options::POP), 'META'];
        $reply = $this->ask('DQ.POP', $queue, $words, self::blocks($options));
        return self::messages($queue, $reply);
    }

    /**
     * Takes messages that are due from the first of some queues that has one.
     *
     * @param list<string> $queues
     * @param mixed        ...$options those of pop()
     *
     * @return list<Message>
     */
    public function popAny(array $queues, mixed ...$options): array
    {
        $keys = array_map($this->key(...), $queues);
        $words = ['DQ.MPOP', (string) count($keys), ...$keys, ...Options::words($options, Options::POP), 'META'];
        $reply = $this->connection->call($words, self::blocks($options));
        return $reply ? self::messages($queues[array_search($reply[0], $keys, true)], $reply[1]) : [];
    }

    /** Acknowledges messages by their ids or receipts. Returns how many were acknowledged. */
    public function ack(string $queue, string ...$receipts): int
    {
        return (int) $this->ask('DQ.ACK', $queue, array_values($receipts));
    }

    /**
     * Acknowledges messages and takes the next ones.
     *
     * @param list<string> $receipts
     * @param mixed        ...$options those of pop(), without `noAck`
     *
     * @return array{int, list<Message>} how many were acknowledged, and the messages
     */
    public function ackPop(string $queue, array $receipts, mixed ...$options): array
    {
        $known = array_diff(Options::POP, ['noAck']);
        $words = [(string) count($receipts), ...array_values($receipts), ...Options::words($options, $known), 'META'];
        [$acked, $messages] = $this->ask('DQ.ACKPOP', $queue, $words, self::blocks($options));
        return [$acked, self::messages($queue, $messages)];
    }

    /**
     * Acknowledges a message and keeps it as done. Returns whether it was delivered.
     *
     * @param mixed ...$options `result`, `retain` in seconds: those of DQ.COMPLETE
     */
    public function complete(string $queue, string $receipt, mixed ...$options): bool
    {
        return (bool) $this->ask('DQ.COMPLETE', $queue, [$receipt, ...Options::words($options, ['result', 'retain'])]);
    }

    /**
     * Gives a message back, and returns its new state: `ready`, `delayed`, `dead`, or null if the lease is lost.
     *
     * @param mixed ...$options `delay` in seconds, `error`, `dead`, `noCount`, `checkpoint`: those of DQ.NACK
     */
    public function nack(string $queue, string $receipt, mixed ...$options): ?string
    {
        $words = Options::words($options, ['delay', 'error', 'dead', 'noCount', 'checkpoint']);
        return $this->ask('DQ.NACK', $queue, [$receipt, ...$words]);
    }

    /**
     * Extends a lease. Returns its new end in ms since 1970 by the clock of the server, or null if it is lost.
     *
     * @param mixed ...$options `lease` in seconds, `checkpoint`: those of DQ.EXTEND
     */
    public function extend(string $queue, string $receipt, mixed ...$options): ?int
    {
        return $this->ask('DQ.EXTEND', $queue, [$receipt, ...Options::words($options, ['lease', 'checkpoint'])]);
    }

    /**
     * Extends leases. Returns what extend() does for each.
     *
     * @param list<string> $receipts
     * @param mixed        ...$options `lease` in seconds
     *
     * @return list<int|null>
     */
    public function extendMany(string $queue, array $receipts, mixed ...$options): array
    {
        $words = [(string) count($receipts), ...array_values($receipts), ...Options::words($options, ['lease'])];
        return $this->ask('DQ.MEXTEND', $queue, $words);
    }

    /** @param array<string, mixed> $options */
    private static function blocks(array $options): float
    {
        $waits = $options['block'] ?? 0;
        return (float) Options::milliseconds('block', $waits) / 1000;
    }

    /**
     * @param array<mixed>|null $reply
     *
     * @return list<Message>
     */
    private static function messages(string $queue, ?array $reply): array
    {
        return array_map(static fn (array $one): Message => Message::of($queue, $one), array_values($reply ?? []));
    }
}
