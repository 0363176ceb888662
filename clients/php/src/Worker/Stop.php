<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;

/** The end of a worker: pops are ended, handlers get their time, and the rest is given back. */
final class Stop
{
    /** How long the server may take to end a pop, in seconds, before the connection is closed. */
    private const ENDING = 0.5;
    /** How often it is asked to: a connection may have been about to wait. In seconds. */
    private const AGAIN = 0.03;
    /** For how long outcomes are reported once all handlers have ended, in seconds. */
    private const PATIENCE = 5.0;

    public int $givenBack = 0;
    private readonly float $begun;
    private float $nextUnblock = 0.0;
    private bool $doesNotEnd = false;
    private ?float $ended = null;

    /** @param float $limit until when handlers may run, by Dq\Clock */
    public function __construct(private readonly Engine $engine, private readonly float $limit)
    {
        $this->begun = Clock::now();
    }

    public function turn(float $now): void
    {
        foreach ($this->engine->lanes as $lane) {
            $lane->flushAcks();
        }
        if ($now >= $this->nextUnblock) {
            $this->nextUnblock = $now + self::AGAIN;
            $this->endPops($now);
        }
        if ($now >= $this->limit) {
            $this->giveBack();
        }
        if ($this->ended === null && !$this->isAnythingRunning()) {
            $this->ended = $now;
        }
    }

    /** Returns when turn() has something to do, by Clock. */
    public function next(): float
    {
        $popping = array_filter($this->engine->lanes, static fn (Lane $lane): bool => $lane->isPopping());
        return min($this->limit, $popping === [] ? INF : $this->nextUnblock);
    }

    public function isDone(): bool
    {
        if ($this->ended === null) {
            return false;
        }
        $isUnanswered = static fn (Lane $lane): bool => $lane->unanswered !== [];
        return array_filter($this->engine->lanes, $isUnanswered) === []
            || Clock::now() > $this->ended + self::PATIENCE;
    }

    private function endPops(float $now): void
    {
        foreach ($this->engine->lanes as $lane) {
            if (!$lane->isPopping()) {
                continue;
            }
            // A connection on which nothing arrives may be dead, although another one is served.
            if ($this->doesNotEnd || $lane->connectionId() === null || $now - $this->begun > self::ENDING) {
                $lane->hangUp();
                continue;
            }
            $this->engine->reporter->unblock($lane, function (bool $wasDone): void {
                $this->doesNotEnd = $this->doesNotEnd || !$wasDone;
            });
        }
    }

    private function giveBack(): void
    {
        foreach ($this->engine->lanes as $lane) {
            foreach ($lane->held as $delivery) {
                $this->engine->takeAway($lane, $delivery, 'stopping');
            }
        }
    }

    private function isAnythingRunning(): bool
    {
        foreach ($this->engine->lanes as $lane) {
            if ($lane->isPopping() || $lane->held !== []) {
                return true;
            }
        }
        return false;
    }
}
