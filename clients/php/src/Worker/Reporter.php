<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;

/**
 * The connection that extends leases, stores checkpoints, and reports outcomes until they are answered. No handler and
 * no pop holds it up.
 */
final class Reporter
{
    private ?Wire $wire = null;
    private float $nextTry = 0.0;
    private Backoff $backoff;
    /** @var list<array{Lane, Delivery, Outcome}> what is to be sent again */
    private array $reports = [];
    /** @var array<string, true> the queues whose leases are being extended */
    private array $extending = [];

    public function __construct(private readonly Engine $engine)
    {
        $this->backoff = new Backoff();
    }

    public function wire(): ?Wire
    {
        return $this->wire;
    }

    /** Sends an outcome until the server answers it. */
    public function report(Lane $lane, Delivery $delivery, Outcome $outcome): void
    {
        $this->reports[] = [$lane, $delivery, $outcome];
    }

    /** Sends what is to be sent. */
    public function turn(float $now): void
    {
        $lanes = array_filter($this->engine->lanes, fn (Lane $lane): bool => $this->isDue($lane, $now));
        $unsaved = $this->unsaved();
        if (($lanes === [] && $this->reports === [] && $unsaved === []) || !$this->isReady($now)) {
            return;
        }
        foreach ($lanes as $lane) {
            $this->extend($lane);
        }
        foreach ($unsaved as [$lane, $delivery]) {
            $this->save($lane, $delivery);
        }
        $reports = $this->reports;
        $this->reports = [];
        foreach ($reports as [$lane, $delivery, $outcome]) {
            $this->send($lane, $delivery, $outcome);
        }
    }

    /** Returns when turn() has something to do, by Clock. */
    public function next(): float
    {
        $next = $this->reports === [] && $this->unsaved() === [] ? INF : $this->nextTry;
        foreach ($this->engine->lanes as $lane) {
            if (!isset($this->extending[$lane->queue])) {
                $due = array_map(static fn (Delivery $delivery): float => $delivery->due, $lane->held);
                $next = min($next, max($this->nextTry, min([INF, ...array_values($due)])));
            }
        }
        return $next;
    }

    /**
     * Ends the pop of a lane, in a transaction which the server postpones while writes are paused: some servers end
     * when a client is unblocked whose command is postponed.
     *
     * @param callable(bool): void $then whether the server did it
     */
    public function unblock(Lane $lane, callable $then): void
    {
        if (!$this->isReady(Clock::now())) {
            $then(false);
            return;
        }
        $nothing = static function (): void {
        };
        $this->wire->send(['MULTI'], $nothing, Lane::MARGIN);
        $this->wire->send(['DQ.ACK', $lane->key, '#'], $nothing, Lane::MARGIN);
        $this->wire->send(['CLIENT', 'UNBLOCK', $lane->connectionId()], $nothing, Lane::MARGIN);
        $this->wire->send(['EXEC'], static fn (mixed $reply) => $then(is_array($reply)), Lane::MARGIN);
    }

    private function isReady(float $now): bool
    {
        if ($this->wire !== null && !$this->wire->isOpen()) {
            $this->wire = null; // It was closed while it was idle.
        }
        if ($this->wire === null && $now >= $this->nextTry) {
            try {
                $this->wire = new Wire($this->engine->server);
            } catch (ConnectionLost) {
                $this->pause();
            }
        }
        return $this->wire !== null && $now >= $this->nextTry;
    }

    private function isDue(Lane $lane, float $now): bool
    {
        if (isset($this->extending[$lane->queue]) || $lane->held === []) {
            return false;
        }
        $isDue = static fn (Delivery $delivery): bool => $delivery->due <= $now;
        return $lane->asksForLosses || array_filter($lane->held, $isDue) !== [];
    }

    /** Extends all leases of a queue. */
    private function extend(Lane $lane): void
    {
        $this->askTime($lane);
        $lane->asksForLosses = false;
        $this->extending[$lane->queue] = true;
        $held = array_values($lane->held);
        $receipts = array_map(static fn (Delivery $delivery): string => $delivery->message->receipt, $held);
        $sent = Clock::now();
        $then = fn (mixed $reply) => $this->extended($lane, $held, $reply, $sent);
        $this->ask(['DQ.MEXTEND', $lane->key, count($receipts), ...$receipts, ...$lane->leases->words()], $then);
    }

    /** Asks for the time of the server, if it is not known well enough to tell when a lease ends. */
    private function askTime(Lane $lane): void
    {
        $time = $lane->leases->time;
        if ($time->isOld()) {
            $asked = Clock::now();
            $learn = static function (mixed $reply) use ($time, $asked): void {
                if (is_array($reply) || ($reply instanceof ServerError && !$reply->isTransient())) {
                    $time->learn($reply, $asked);
                }
            };
            $this->ask(['TIME'], $learn);
        }
    }

    /** @param list<Delivery> $held */
    private function extended(Lane $lane, array $held, mixed $reply, float $sent): void
    {
        unset($this->extending[$lane->queue]);
        if ($reply instanceof \Throwable) {
            if ($reply instanceof ServerError && !$reply->isTransient()) {
                $this->engine->log("queue $lane->queue: leases cannot be extended: {$reply->getMessage()}");
            }
            $this->pause();
            return;
        }
        $this->backoff->reset();
        foreach ($held as $i => $delivery) {
            if ($delivery->isDecided) {
                continue;
            }
            if (is_int($reply[$i])) {
                $lane->leases->extended($delivery, $reply[$i], $sent);
            } else {
                $lane->lose($delivery, 'lease');
            }
        }
    }

    /** @return list<array{Lane, Delivery}> those with a checkpoint that is to be sent */
    private function unsaved(): array
    {
        $unsaved = [];
        foreach ($this->engine->lanes as $lane) {
            foreach ($lane->held as $delivery) {
                if ($delivery->checkpoint !== null && !$delivery->isSaving) {
                    $unsaved[] = [$lane, $delivery];
                }
            }
        }
        return $unsaved;
    }

    /** Stores a checkpoint, which also extends the lease. */
    private function save(Lane $lane, Delivery $delivery): void
    {
        $this->askTime($lane);
        $checkpoint = $delivery->checkpoint;
        $delivery->isSaving = true;
        $sent = Clock::now();
        $then = fn (mixed $reply) => $this->saved($lane, $delivery, $checkpoint, $reply, $sent);
        $lease = $lane->leases->words();
        $words = ['DQ.EXTEND', $lane->key, $delivery->message->receipt, ...$lease, 'CHECKPOINT', $checkpoint];
        $this->ask($words, $then);
    }

    private function saved(Lane $lane, Delivery $delivery, string $checkpoint, mixed $reply, float $sent): void
    {
        $delivery->isSaving = false;
        if ($reply instanceof ConnectionLost || ($reply instanceof ServerError && $reply->isTransient())) {
            $this->pause();
            return;
        }
        if ($delivery->checkpoint === $checkpoint) {
            $delivery->checkpoint = null;
        }
        if ($reply instanceof ServerError) {
            $this->engine->log("queue $lane->queue: a checkpoint was refused: {$reply->getMessage()}");
            return;
        }
        $this->backoff->reset();
        if ($delivery->isDecided) {
            return;
        }
        if (is_int($reply)) {
            $lane->leases->extended($delivery, $reply, $sent);
        } else {
            $lane->lose($delivery, 'lease');
        }
    }

    private function send(Lane $lane, Delivery $delivery, Outcome $outcome): void
    {
        $words = [$outcome->command, $lane->key, $delivery->message->receipt, ...$outcome->words];
        if ($delivery->checkpoint !== null && $outcome->command === 'DQ.NACK') {
            $words = [...$words, 'CHECKPOINT', $delivery->checkpoint]; // There was no time to store it before.
        }
        $this->ask($words, function (mixed $reply) use ($lane, $delivery, $outcome): void {
            $isTransient = $reply instanceof ServerError && $reply->isTransient();
            if ($reply instanceof ConnectionLost || $isTransient) {
                $this->report($lane, $delivery, $outcome);
                $this->pause();
                return;
            }
            if ($reply instanceof ServerError) {
                $this->engine->log("queue $lane->queue: $outcome->command was refused: {$reply->getMessage()}");
            } else {
                $this->backoff->reset();
            }
            $lane->answered($delivery);
            $this->engine->reported($lane, $delivery, $outcome, $reply === 'dead');
        });
    }

    /**
     * @param list<string|int>       $words
     * @param callable(mixed): mixed $then
     */
    private function ask(array $words, callable $then): void
    {
        if ($this->wire === null) {
            $then(new ConnectionLost('the connection was closed', true));
            return;
        }
        $wire = $this->wire;
        $this->wire->send($words, function (mixed $reply) use ($then, $wire): void {
            if ($reply instanceof ConnectionLost && $this->wire === $wire) {
                $this->wire = null;
                $this->pause();
            }
            $then($reply);
        }, Lane::MARGIN);
    }

    /** Once for all that was sent together. */
    private function pause(): void
    {
        if (Clock::now() >= $this->nextTry) {
            $this->nextTry = Clock::now() + $this->backoff->next();
        }
    }
}
