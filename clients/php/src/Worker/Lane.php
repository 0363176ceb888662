<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;
use Dq\Message;
use Dq\Reply;
use Dq\Server;

/**
 * One queue of a worker: it pops for the children that are free. While it waits in a pop that blocks, acks go through
 * the Reporter; otherwise they go with the next pop.
 */
final class Lane
{
    /** The lease of a queue that does not exist yet, or whose settings this user may not read, in ms. */
    private const DEFAULT_LEASE = 30_000;
    /** How long a pop waits, in ms. */
    private const BLOCK = 5000;
    /** How much later than it waits its reply may come, in seconds. */
    public const MARGIN = 5.0;
    /** How often the settings of the queue and the time of the server are read again, in seconds. */
    private const LEARN = 5.0;
    /** After how many seconds a pop asks for more again, once a reply was lost. It may have been too large to pass. */
    private const CAREFUL = 60.0;
    /** A notice may come before the reply of the pop that it concerns. So many are remembered. */
    private const EARLY_NOTICES = 1000;

    public readonly Leases $leases;
    /** @var array<int, Child> by their processes */
    public array $children = [];
    /** @var array<string, Delivery> those without an outcome, by their receipts */
    public array $held = [];
    /** @var array<int, Delivery> those whose outcome the server has not answered, by their object ids */
    public array $unanswered = [];
    /** Whether a pop was sent. */
    public bool $isConsuming = false;
    /** Whether all leases are to be extended now, as some may be lost. */
    public bool $asksForLosses = false;

    private ?Wire $wire = null;
    private ?int $connectionId = null;
    private float $nextTry = 0.0;
    private float $learned = -INF;
    /** How many replies are to come before the next pop. */
    private int $expected = 0;
    private bool $isPopping = false;
    private bool $blocks = false;
    /** @var list<Delivery> what the next pop acknowledges */
    private array $acks = [];
    /** @var list<Delivery> what the pop that was sent acknowledges */
    private array $popped = [];
    /** For how many messages it asks. */
    private int $asked = 0;
    private int $most;
    private float $carefulUntil = 0.0;
    private Backoff $backoff;
    private bool $isInterrupted = false;
    /** @var array<string, string> */
    private array $early = [];

    /**
     * @param callable(Message): mixed $handler
     * @param string                   $key     of the queue, with the prefix
     * @param int|null                 $lease   in ms; null: that of the message, else that of the queue
     */
    public function __construct(
        private readonly Engine $engine,
        public readonly string $queue,
        public readonly string $key,
        public readonly mixed $handler,
        public readonly int $places,
        ?int $lease,
    ) {
        $this->leases = new Leases($lease, self::DEFAULT_LEASE);
        $this->most = $places;
        $this->backoff = new Backoff();
    }

    public function wire(): ?Wire
    {
        return $this->wire;
    }

    public function connectionId(): ?int
    {
        return $this->connectionId;
    }

    public function isPopping(): bool
    {
        return $this->isPopping;
    }

    /** Asks for messages if there is room and nothing else is to come. */
    public function turn(float $now): void
    {
        if ($this->engine->isStopping() || $now < $this->nextTry || $this->isPopping || $this->expected > 0) {
            return;
        }
        if ($this->wire !== null && !$this->wire->isOpen()) {
            $this->wire = null; // It was closed while it was idle.
        }
        try {
            if ($this->wire === null) {
                $this->wire = new Wire($this->engine->server);
                $this->learned = -INF;
                $this->send(['CLIENT', 'ID'], fn (mixed $id) => $this->connectionId = is_int($id) ? $id : null);
            }
        } catch (ConnectionLost $lost) {
            $this->broken($lost);
            return;
        }
        if ($now - $this->learned > self::LEARN) {
            $this->learn($now);
        } elseif ($this->room() > 0) {
            $this->pop($now);
        } else {
            $this->flushAcks();
        }
    }

    /** Returns when turn() has something to do by itself, by Clock. */
    public function next(): float
    {
        return $this->wire === null ? $this->nextTry : INF;
    }

    /** Ends the pop: a message that is on its way is lost until its lease ends. */
    public function hangUp(): void
    {
        $this->wire?->close();
    }

    /** Lets the Reporter send the acks that wait for a pop. */
    public function flushAcks(): void
    {
        foreach ($this->acks as $delivery) {
            $this->engine->reporter->report($this, $delivery, Outcome::plainAck());
        }
        $this->acks = [];
    }

    /** A handler has ended, or something else has decided what becomes of its message. */
    public function decide(Delivery $delivery, Outcome $outcome): bool
    {
        if ($delivery->isDecided) {
            return false;
        }
        $delivery->isDecided = true;
        unset($this->held[$delivery->message->receipt]);
        $this->unanswered[spl_object_id($delivery)] = $delivery;
        $goesWithPop = $outcome->isPlainAck() && !($this->isPopping && $this->blocks) && $this->wire !== null;
        if ($goesWithPop && !$this->engine->isStopping()) {
            $this->acks[] = $delivery;
        } else {
            $this->engine->reporter->report($this, $delivery, $outcome);
        }
        return true;
    }

    /** The server has answered the outcome. */
    public function answered(Delivery $delivery): void
    {
        unset($this->unanswered[spl_object_id($delivery)]);
    }

    /** The message was taken from its handler. */
    public function lose(Delivery $delivery, string $reason): void
    {
        if (!$delivery->isDecided) {
            $delivery->isDecided = true;
            $delivery->lost = $reason;
            unset($this->held[$delivery->message->receipt]);
            $this->engine->lost($this, $delivery, $reason);
        }
    }

    /** Has all leases extended now, which shows what is lost. */
    public function askForLosses(): void
    {
        $this->asksForLosses = $this->held !== [];
    }

    /** A command has taken a message from this worker, or from another one. */
    public function noticed(string $reason, ?string $receipt): void
    {
        if ($receipt === null) {
            $this->askForLosses();
            return;
        }
        $delivery = $this->held[$receipt] ?? null;
        if ($delivery !== null) {
            $this->lose($delivery, $reason);
        } elseif ($this->isPopping) {
            $this->early[$receipt] = $reason;
            $this->early = array_slice($this->early, -self::EARLY_NOTICES, null, true);
        }
    }

    /** Returns the number of free places. A message keeps its place until its outcome is answered or sent in a pop. */
    private function room(): int
    {
        $occupied = [];
        $free = 0;
        foreach ($this->children as $child) {
            $free += $child->isFree() ? 1 : 0;
            if ($child->delivery !== null) {
                $occupied[spl_object_id($child->delivery)] = true;
            }
        }
        $open = array_filter($this->unanswered, fn (Delivery $one): bool => !in_array($one, $this->acks, true));
        return min($free, $this->places - count($occupied + $open));
    }

    private function learn(float $now): void
    {
        $this->send(['TIME'], function (mixed $reply) use ($now): void {
            $this->leases->time->learn($reply, $now);
        });
        $this->send(['DQ.INFO', $this->key], function (mixed $reply) use ($now): void {
            if ($reply instanceof ServerError && $reply->kind !== 'NOPERM') {
                $this->broken($reply);
                return;
            }
            $this->leases->learn(is_array($reply) ? Reply::map($reply) : []);
            $this->learned = $now;
        });
    }

    private function pop(float $now): void
    {
        if ($this->most < $this->places && $now > $this->carefulUntil) {
            $this->most = min($this->most * 2, $this->places);
            $this->carefulUntil = $now + self::CAREFUL;
        }
        $asked = min($this->room(), $this->most);
        $acks = $this->popped = $this->acks;
        $this->acks = [];
        $receipts = array_map(static fn (Delivery $delivery): string => $delivery->message->receipt, $acks);
        $command = $acks === [] ? ['DQ.POP', $this->key] : ['DQ.ACKPOP', $this->key, count($receipts), ...$receipts];
        $options = ['COUNT', $asked, ...$this->leases->words(), 'META', 'AS', $this->engine->name];
        // A pop with acks does not wait, so that acks that are not answered are repeated soon.
        $this->blocks = $acks === [];
        $block = $this->blocks ? ['BLOCK', $this->leases->isCountedByServer() ? self::BLOCK : $this->ownBlock()] : [];
        $this->isPopping = true;
        $begun = $this->leases->isCountedByServer() ? null : $now;
        $this->asked = $asked;
        $then = fn (mixed $reply) => $this->arrived($reply, $begun);
        $this->send([...$command, ...$options, ...$block], $then, self::BLOCK / 1000 + self::MARGIN);
        if (!$this->isConsuming) {
            $this->isConsuming = true;
            $this->engine->consuming();
        }
    }

    /** Leases that count from the sending of the pop are not to be over when its reply arrives. */
    private function ownBlock(): int
    {
        return max(1, min(self::BLOCK, (int) ($this->leases->seconds() * 500)));
    }

    private function arrived(mixed $reply, ?float $begun): void
    {
        if ($reply instanceof ServerError) {
            $this->broken($reply);
            return;
        }
        $acks = $this->popped;
        $this->popped = [];
        $this->isPopping = false;
        $this->backoff->reset();
        if ($this->isInterrupted) {
            $this->isInterrupted = false;
            $this->engine->log("queue $this->queue: consumes again");
        }
        array_map($this->answered(...), $acks);
        $messages = $acks === [] ? $reply : $reply[1];
        foreach ($messages ?? [] as $one) {
            $this->received(Message::of($this->queue, $one), $begun);
        }
        $this->early = [];
    }

    private function received(Message $message, ?float $begun): void
    {
        $now = Clock::now();
        $left = $this->leases->left($message->deadline, $now, $begun);
        $delivery = new Delivery($message, $now + $left, $this->leases->seconds());
        $this->held[$message->receipt] = $delivery;
        $reason = $left <= 0 ? 'lease' : $this->early[$message->receipt] ?? null;
        if ($reason !== null) {
            $this->lose($delivery, $reason); // The reply came when another worker may have the message.
            return;
        }
        $child = current(array_filter($this->children, static fn (Child $child): bool => $child->isFree())) ?: null;
        if ($this->engine->isStopping() || $child === null) {
            $this->decide($delivery, Outcome::givenBack());
        } else {
            $child->begin($delivery);
        }
    }

    /**
     * @param list<string|int>        $words
     * @param callable(mixed): mixed $then
     */
    private function send(array $words, callable $then, float $patience = self::MARGIN): void
    {
        $this->expected++;
        $wire = $this->wire;
        $answer = function (mixed $reply) use ($then, $wire): void {
            if ($this->wire !== $wire) {
                return; // It comes from a connection that was given up.
            }
            if ($reply instanceof ConnectionLost) {
                $this->broken($reply);
                return;
            }
            $this->expected--;
            $then($reply);
        };
        $wire->send($words, $answer, $patience);
    }

    private function broken(\Throwable $error): void
    {
        if ($this->isPopping && $error instanceof ConnectionLost && $this->asked > 1) {
            $this->most = intdiv($this->asked, 2);
            $this->carefulUntil = Clock::now() + self::CAREFUL;
        }
        $wire = $this->wire;
        $this->wire = null;
        $this->expected = 0;
        $this->isPopping = false;
        $this->acks = [...$this->popped, ...$this->acks];
        $this->popped = [];
        $this->connectionId = null;
        $wire?->close();
        $this->flushAcks();
        $this->nextTry = Clock::now() + $this->backoff->next();
        if (!$this->isInterrupted && !$this->engine->isStopping()) {
            $this->isInterrupted = true;
            $this->engine->log("queue $this->queue: {$error->getMessage()}");
        }
    }
}
