<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Message;

/** A message that this worker holds. All times are those of Dq\Clock. */
final class Delivery
{
    public readonly float $begun;
    /** When its lease is to be extended. */
    public float $due;
    /** When the lease ends, by the clock of the server in ms; null: it has not said. */
    public ?int $deadline;
    /** When the server has said that. */
    public float $heard;
    /** Whether an outcome is found, by the handler or by something that took the message from it. */
    public bool $isDecided = false;
    /** Why the message was taken from its handler. */
    public ?string $lost = null;
    /** Whether the lease has ended while the outcome was not answered. */
    public bool $isLate = false;
    /** What the handler has saved, and the server has not kept yet. */
    public ?string $checkpoint = null;
    /** Whether a command that stores a checkpoint is not answered. */
    public bool $isSaving = false;

    /**
     * @param float $end   when the lease ends
     * @param float $lease of a message of this queue, in seconds
     */
    public function __construct(public readonly Message $message, public float $end, float $lease)
    {
        $this->begun = $this->heard = Clock::now();
        $this->due = $this->begun + min($end - $this->begun, $lease) / 2;
        $this->deadline = $message->deadline ?: null;
    }
}
