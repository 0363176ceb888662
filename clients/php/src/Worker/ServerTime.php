<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;

/**
 * The clock of the server, against which leases are counted: the server says when each one ends. Nothing that a worker
 * measures by itself is as exact, because the reply to a pop may be late, and a message may have a lease of its own.
 */
final class ServerTime
{
    /** By how much the clocks of two machines may differ after a time, as a part of it. */
    public const DRIFT = 0.001;
    /** Deadlines are whole milliseconds. In seconds. */
    public const ROUNDING = 0.002;
    /** For how long what is known counts, in seconds. */
    private const FRESH = 5.0;
    private const JUST = 0.2;
    /** If a deadline is off by more than this, a clock was set: seconds, and a share of the elapsed time. */
    private const JUMP = 0.5;
    private const JUMP_PART = 0.1;

    private ?float $ahead = null;
    private float $readAt = -INF;

    /** Returns whether the server is to be asked, since somebody may have set its clock. */
    public function isOld(): bool
    {
        return Clock::now() - $this->readAt > self::FRESH;
    }

    public function isKnown(): bool
    {
        return $this->ahead !== null;
    }

    /**
     * Reads the reply to TIME, or an error: without the right to that, leases are counted from what begins them.
     *
     * @param float $sent when the command was sent
     */
    public function learn(mixed $reply, float $sent): void
    {
        $this->readAt = $sent;
        if (!is_array($reply)) {
            $this->ahead = null;
            return;
        }
        $ahead = (int) $reply[0] + (int) $reply[1] / 1_000_000 - $sent;
        $took = Clock::now() - $sent;
        $isLate = $this->ahead !== null && $this->ahead <= $ahead && $ahead <= $this->ahead + $took;
        if (!$isLate) {
            $this->ahead = $ahead; // Otherwise what is known is as good.
        }
    }

    /** The clock may have been set. Returns whether it was not asked for just now. */
    public function expire(): bool
    {
        $isOld = Clock::now() - $this->readAt > self::JUST;
        if ($isOld) {
            $this->readAt = -INF;
        }
        return $isOld;
    }

    /** Returns how many seconds are left until a deadline of the server (ms), null if that is not known. */
    public function left(?int $deadline, float $now): ?float
    {
        if ($this->ahead === null || $deadline === null) {
            return null;
        }
        $left = $deadline / 1000 - ($now + $this->ahead);
        return $left - abs($left) * self::DRIFT - self::ROUNDING;
    }

    /** Returns whether a deadline that has grown so much in some seconds shows that a clock, or a lease, was set. */
    public static function hasJumped(float $grown, float $passed): bool
    {
        return $grown == 0.0 || abs($grown - $passed) > self::JUMP + self::JUMP_PART * $passed;
    }
}
