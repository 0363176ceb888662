<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;

/** How long the leases of a queue last, and when they end by the clock of this process. */
final class Leases
{
    public readonly ServerTime $time;
    /** Of a message without one of its own, in ms. */
    private int $lease;
    /** The longest that the queue permits, in ms; 0: any. */
    private int $longest = 0;

    /**
     * @param int|null $asked   what the user of the worker has chosen, in ms
     * @param int      $default in ms
     */
    public function __construct(private readonly ?int $asked, private readonly int $default)
    {
        $this->time = new ServerTime();
        $this->lease = $asked ?? $default;
    }

    /**
     * Reads the settings of the queue.
     *
     * @param array<string, mixed> $info
     */
    public function learn(array $info): void
    {
        $this->lease = $this->asked ?? (int) ($info['lease'] ?? $this->default);
        $this->longest = (int) ($info['maxlease'] ?? 0);
    }

    /** Returns how long a lease lasts, in seconds. */
    public function seconds(): float
    {
        return ($this->longest > 0 ? min($this->lease, $this->longest) : $this->lease) / 1000;
    }

    public function isCountedByServer(): bool
    {
        return $this->time->isKnown();
    }

    /**
     * Returns the lease that a command asks for. How long that of a message lasts only the time of the server tells, so
     * without it that of the queue is asked for.
     *
     * @return list<string|int>
     */
    public function words(): array
    {
        if ($this->asked !== null) {
            return ['LEASE', $this->asked];
        }
        return $this->time->isKnown() ? [] : ['LEASE', $this->lease];
    }

    /**
     * Returns how many seconds the lease of a message lasts that was delivered.
     *
     * @param int        $deadline by the clock of the server, in ms
     * @param float|null $begun    when its pop was sent, if the server does not tell its time
     */
    public function left(int $deadline, float $now, ?float $begun): float
    {
        return $this->time->left($deadline, $now) ?? $this->seconds() - ($now - ($begun ?? $now));
    }

    /**
     * A command has extended a lease.
     *
     * @param int   $deadline by the clock of the server, in ms
     * @param float $sent     when the command was sent
     */
    public function extended(Delivery $delivery, int $deadline, float $sent): void
    {
        $now = Clock::now();
        $grown = INF;
        $passed = $sent - $delivery->heard;
        $hasJumped = false;
        if ($delivery->deadline !== null) {
            $grown = ($deadline - $delivery->deadline) / 1000;
            $isCut = $this->longest > 0 && $grown < $passed;
            $hasJumped = !$isCut && ServerTime::hasJumped($grown, $now - $delivery->heard);
        }
        $left = $this->time->left($deadline, $now);
        if ($left === null) {
            $left = $this->seconds() - ($now - $sent);
            if ($this->longest > 0 && $grown < $passed * (1 - ServerTime::DRIFT) - ServerTime::ROUNDING) {
                $left = min($left, $delivery->end + $grown - $now); // MAXLEASE has cut it.
            }
        }
        // MAXLEASE permits nothing more to a lease that has not grown.
        $isLongest = $deadline === $delivery->deadline && $this->longest > 0 && $passed > ServerTime::ROUNDING;
        $delivery->due = $isLongest ? INF : $now + min($left, $this->seconds()) / 2;
        if ($hasJumped && $this->time->expire()) {
            $delivery->due = $now; // It is extended again at once, and then it is known how long that lasts.
        }
        $delivery->deadline = $deadline;
        $delivery->heard = $now;
        $delivery->end = $now + $left;
    }
}
