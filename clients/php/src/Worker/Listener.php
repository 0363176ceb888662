<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;

/** The connection on which the server says that a command has taken a message. Without it losses show at half time. */
final class Listener
{
    /** How long it is without the right to listen, in seconds. */
    private const REFUSED = 30.0;

    private ?Wire $wire = null;
    private float $nextTry = 0.0;
    private Backoff $backoff;
    /** @var array<string, Lane> by their channels */
    private array $lanes = [];

    public function __construct(private readonly Engine $engine)
    {
        $this->backoff = new Backoff();
    }

    public function wire(): ?Wire
    {
        return $this->wire;
    }

    public function turn(float $now): void
    {
        if ($this->wire !== null || $now < $this->nextTry) {
            return;
        }
        foreach ($this->engine->lanes as $lane) {
            $this->lanes["__dq@{$this->engine->server->database}__:$lane->key"] = $lane;
        }
        try {
            $this->wire = new Wire($this->engine->server, $this->heard(...));
        } catch (ConnectionLost) {
            $this->nextTry = $now + $this->backoff->next();
            return;
        }
        foreach (array_keys($this->lanes) as $channel) {
            $this->wire->send(['SUBSCRIBE', $channel], $this->subscribed(...), Lane::MARGIN);
        }
    }

    public function next(): float
    {
        return $this->wire === null ? $this->nextTry : INF;
    }

    /** Notices that the connection was lost, as nothing is asked on it. */
    public function look(): void
    {
        if ($this->wire !== null && !$this->wire->isOpen()) {
            $this->wire = null;
            $this->nextTry = Clock::now() + $this->backoff->next();
        }
    }

    private function subscribed(mixed $reply): void
    {
        if ($reply instanceof ServerError) {
            $this->wire?->close();
            $this->wire = null;
            $this->nextTry = Clock::now() + self::REFUSED;
            return;
        }
        if (is_array($reply)) {
            $this->backoff->reset();
            // What was taken before it listened shows when the lease is extended.
            $this->lanes[$reply[1]]->askForLosses();
        }
    }

    /** @param array<mixed> $message */
    private function heard(array $message): void
    {
        [, $channel, $text] = $message;
        [$reason, $receipt] = [...explode(' ', $text, 2), null];
        $this->lanes[$channel]->noticed($reason, $receipt);
    }
}
