<?php

declare(strict_types=1);

namespace Dq;

use Dq\Worker\Child;

/** A message that was delivered. */
final class Message
{
    /** The longest checkpoint that the server keeps, in bytes. */
    private const CHECKPOINT = 65536;

    /**
     * @param string                $queue      the queue, without the prefix of the client
     * @param int                   $attempt    the number of deliveries so far, this one included
     * @param string                $receipt    what names this delivery in commands
     * @param array<string, string> $headers
     * @param int                   $created    when it was pushed, in ms since 1970
     * @param int                   $due        when it was due, in ms since 1970
     * @param int                   $deadline   when its lease ends, in ms since 1970 by the clock of the server
     * @param string|null           $error      the error of the last attempt
     * @param string|null           $checkpoint what an earlier attempt has stored
     */
    public function __construct(
        public readonly string $queue,
        public readonly string $id,
        public readonly string $payload,
        public readonly int $attempt,
        public readonly string $receipt,
        public readonly array $headers = [],
        public readonly int $priority = 0,
        public readonly ?string $group = null,
        public readonly ?string $batch = null,
        public readonly int $created = 0,
        public readonly int $due = 0,
        public readonly int $deadline = 0,
        public readonly ?string $error = null,
        public readonly ?string $checkpoint = null,
    ) {
    }

    /**
     * Stores a checkpoint, in a handler of a Worker: how far the work is. The next attempt, if there is one, finds it
     * in $checkpoint. This does not wait for the server, which is asked until it keeps the last one that was saved. An
     * empty one removes what was saved.
     *
     * @param string $checkpoint of at most 65536 bytes
     */
    public function save(string $checkpoint): void
    {
        if (strlen($checkpoint) > self::CHECKPOINT) {
            $size = strlen($checkpoint);
            throw new \InvalidArgumentException("a checkpoint of $size bytes is longer than " . self::CHECKPOINT);
        }
        Child::save($this->receipt, $checkpoint);
    }

    /**
     * Returns the payload, which has to be a JSON object, as an array. The exception shows nothing of it.
     *
     * @return array<string, mixed>
     *
     * @throws \UnexpectedValueException
     */
    public function json(): array
    {
        $value = json_decode($this->payload, true);
        if (!is_array($value) || ltrim($this->payload)[0] !== '{') {
            throw new \UnexpectedValueException('the payload is no JSON object');
        }
        return $value;
    }

    /**
     * Returns the message of one element of the reply to a pop with META.
     *
     * @param array<int, mixed> $reply
     */
    public static function of(string $queue, array $reply): self
    {
        [$id, $payload, $attempt, $receipt] = $reply;
        $meta = Reply::map($reply[4] ?? []);
        return new self(
            $queue,
            $id,
            $payload,
            $attempt,
            $receipt,
            $meta['headers'] ?? [],
            $meta['priority'] ?? 0,
            $meta['group'] ?? null,
            $meta['batch'] ?? null,
            $meta['created'] ?? 0,
            $meta['due'] ?? 0,
            $meta['deadline'] ?? 0,
            $meta['error'] ?? null,
            $meta['checkpoint'] ?? null,
        );
    }
}
