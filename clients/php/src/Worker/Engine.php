<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Message;
use Dq\Server;

/**
 * The parent of all processes of a worker. It never runs a handler: it talks to the server, keeps the leases, and has
 * children that do. It waits at one place, for whatever comes first, and never for the server alone.
 */
final class Engine
{
    /** A signal that comes just before it waits is seen after so many seconds. */
    private const LONGEST_WAIT = 0.25;
    /** For how long the hook may go on when the worker stops, in seconds; after a second signal. */
    private const HOOK = 5.0;
    private const HOOK_AT_ONCE = 0.2;

    /** @var list<Lane> */
    public array $lanes = [];
    public readonly Reporter $reporter;
    private Listener $listener;
    private ?Stop $stop = null;
    private int $signals = 0;
    private bool $isReady = false;
    /** When processes that are missing are started again, by Clock. */
    private float $nextStart = 0.0;
    private bool $isShort = false;
    private Backoff $startBackoff;
    private ?Announcer $announcer;

    /**
     * @param float|null                                            $timeLimit of each handler, in seconds
     * @param float                                                 $grace     of handlers at the stop, in seconds
     * @param (callable(string, ?Message, ?string): void)|null $hook
     * @param callable(string): void                                $write     writes a line of the log
     */
    public function __construct(
        public readonly Server $server,
        public readonly string $name,
        private readonly ?float $timeLimit,
        private readonly float $grace,
        ?callable $hook,
        private readonly mixed $write,
    ) {
        $this->reporter = new Reporter($this);
        $this->listener = new Listener($this);
        $this->startBackoff = new Backoff();
        $this->announcer = $hook === null ? null : new Announcer($hook, $this->abandon(...), $this->log(...));
    }

    /** Works until a signal comes. Returns the exit code. */
    public function run(): int
    {
        $this->log("starts with $this->name at {$this->server->address()}");
        $signalled = function (): void {
            $this->signals++;
        };
        pcntl_signal(SIGTERM, $signalled, false);
        pcntl_signal(SIGINT, $signalled, false);
        try {
            $this->announcer?->start();
            $this->startMissing();
        } catch (\RuntimeException $error) {
            $this->killChildren();
            $this->announcer?->close(self::HOOK_AT_ONCE);
            throw $error;
        }
        while ($this->stop === null || !$this->stop->isDone()) {
            $this->turn();
            if ($this->signals > 0 && $this->stop === null) {
                $this->stop = new Stop($this, Clock::now() + $this->grace);
            }
            if ($this->signals > 1) {
                $this->killChildren();
                $this->announcer?->close(self::HOOK_AT_ONCE);
                return 1;
            }
        }
        $this->killChildren();
        $unreported = array_sum(array_map(static fn (Lane $lane): int => count($lane->unanswered), $this->lanes));
        if ($unreported > 0) {
            $then = 'which are delivered again when their leases are over';
            $this->log("error: $this->name could not report $unreported messages, $then");
        }
        $this->log("stopped; {$this->stop->givenBack} messages went back");
        $this->tell('stopped');
        $this->announcer?->close(self::HOOK);
        return $unreported > 0 ? 1 : 0;
    }

    public function isStopping(): bool
    {
        return $this->stop !== null;
    }

    /** A lane pops for the first time. */
    public function consuming(): void
    {
        $isConsuming = static fn (Lane $lane): bool => $lane->isConsuming;
        if (!$this->isReady && count(array_filter($this->lanes, $isConsuming)) === count($this->lanes)) {
            $this->isReady = true;
            $this->tell('ready');
        }
    }

    /** A message was taken from its handler, or its outcome was not answered before the end of its lease. */
    public function lost(Lane $lane, Delivery $delivery, string $reason): void
    {
        $this->log("{$this->about($lane, $delivery)}: lost: $reason");
        $this->tell('lost', $delivery->message, $reason);
        $this->childOf($lane, $delivery)?->kill();
    }

    /** The server has answered an outcome. */
    public function reported(Lane $lane, Delivery $delivery, Outcome $outcome, bool $isDead): void
    {
        if ($outcome->kind === 'back' && $this->stop !== null) {
            $this->stop->givenBack++;
        }
        if ($outcome->error !== null && $outcome->kind !== 'ok') {
            $error = strtr($outcome->error, "\r\n", '  ');
            $details = $outcome->details === '' ? '' : "\n$outcome->details";
            $this->log("{$this->about($lane, $delivery)}: $error" . ($isDead ? '; now dead' : '') . $details);
        }
    }

    public function log(string $line): void
    {
        try {
            ($this->write)("dq: $line");
        } catch (\Throwable $error) {
            fwrite(STDERR, "dq: the log has failed: {$error->getMessage()}\ndq: $line\n");
        }
    }

    /** Kills the children that are at work, and tells why. */
    public function takeAway(Lane $lane, Delivery $delivery, string $reason): void
    {
        $child = $this->childOf($lane, $delivery);
        if ($lane->decide($delivery, Outcome::givenBack())) {
            $delivery->lost = $reason;
            $this->tell('lost', $delivery->message, $reason);
            $child?->kill();
        }
    }

    private function turn(): void
    {
        $now = Clock::now();
        $this->replaceChildren($now);
        foreach ($this->lanes as $lane) {
            $lane->turn($now);
        }
        $this->reporter->turn($now);
        $this->listener->turn($now);
        $this->stop?->turn($now);
        $this->announcer?->turn();
        $this->wait($now);
        foreach ($this->wires() as $wire) {
            $wire->turn();
        }
        $this->listener->look();
        $this->watchChildren();
        $this->watchTime(Clock::now());
    }

    /** @return list<Wire> */
    private function wires(): array
    {
        $wires = array_map(static fn (Lane $lane): ?Wire => $lane->wire(), $this->lanes);
        // A notice says why a message is lost. A reply that came later only says that it is.
        $wires = [$this->listener->wire(), $this->reporter->wire(), ...$wires];
        return array_values(array_filter($wires, static fn (?Wire $wire): bool => $wire?->isOpen() ?? false));
    }

    /** Waits until something happens, or until something is to be done. */
    private function wait(float $now): void
    {
        $next = min($this->reporter->next(), $this->listener->next(), $this->stop?->next() ?? INF);
        $next = $this->isShort && $this->stop === null ? min($next, $this->nextStart) : $next;
        $read = $write = [];
        foreach ($this->wires() as $wire) {
            $read[] = $wire->stream();
            if ($wire->wantsToWrite()) {
                $write[] = $wire->stream();
            }
            $next = min($next, $wire->deadline());
        }
        foreach ($this->lanes as $lane) {
            $next = min($next, $lane->next());
            foreach ($lane->children as $child) {
                $read[] = $child->pipe;
                $next = $this->timeLimit === null || $child->delivery === null
                    ? $next : min($next, $child->delivery->begun + $this->timeLimit);
            }
            foreach ([...$lane->held, ...$lane->unanswered] as $delivery) {
                $next = $delivery->isLate ? $next : min($next, $delivery->end);
            }
        }
        if ($this->announcer?->stream() !== null) {
            $write[] = $this->announcer->stream();
        }
        $seconds = min(self::LONGEST_WAIT, max(0.0, $next - $now));
        // A millisecond more, as what is due a moment later would make it turn without a pause.
        $microseconds = (int) ($seconds * 1_000_000) + 1000;
        $except = null;
        $signals = $this->signals;
        pcntl_signal_dispatch();
        if ($this->signals !== $signals) {
            return; // It came during this turn: it would be seen only after the wait.
        }
        if ($read === [] && $write === []) {
            usleep($microseconds); // All processes have ended, and no connection is open: PHP refuses to wait for them.
        } else {
            @stream_select($read, $write, $except, 0, $microseconds);
        }
        pcntl_signal_dispatch();
    }

    /** A process that cannot be started is tried again later: leases and outcomes do not wait for it. */
    private function replaceChildren(float $now): void
    {
        if ($this->stop !== null || $now < $this->nextStart) {
            return;
        }
        try {
            $this->startMissing();
        } catch (\RuntimeException $error) {
            if (!$this->isShort) {
                $this->log("error: {$error->getMessage()}; this is tried again");
            }
            $this->isShort = true;
            $this->nextStart = $now + $this->startBackoff->next();
            return;
        }
        $this->isShort = false;
        $this->startBackoff->reset();
    }

    /** @throws \RuntimeException if a process cannot be started */
    private function startMissing(): void
    {
        foreach ($this->lanes as $lane) {
            while (count($lane->children) < $lane->places) {
                $this->startChild($lane);
            }
        }
    }

    /** @throws \RuntimeException if it cannot be started */
    private function startChild(Lane $lane): void
    {
        $child = Child::start($lane, $this->abandon(...));
        $lane->children[$child->pid] = $child;
    }

    /** Lets go, in a new process, of what belongs to this one. */
    private function abandon(): void
    {
        foreach ($this->wires() as $wire) {
            $wire->abandon();
        }
        foreach ($this->lanes as $lane) {
            foreach ($lane->children as $other) {
                fclose($other->pipe);
            }
        }
        $this->announcer?->abandon();
    }

    private function watchChildren(): void
    {
        foreach ($this->lanes as $lane) {
            foreach ($lane->children as $child) {
                $this->hear($lane, $child);
                $end = $child->end();
                if ($end !== null) {
                    $this->hear($lane, $child);
                    $this->ended($lane, $child, $end);
                }
            }
        }
    }

    private function hear(Lane $lane, Child $child): void
    {
        $outcome = $child->outcome();
        $delivery = $child->delivery;
        if ($outcome === null || $delivery === null || $delivery->isDecided) {
            return;
        }
        $child->delivery = null;
        if ($outcome->kind === 'ok' && $outcome->error !== null) {
            $this->log("{$this->about($lane, $delivery)}: $outcome->error");
        }
        $this->tell($outcome->kind, $delivery->message, $outcome->error);
        $lane->decide($delivery, $outcome);
    }

    private function ended(Lane $lane, Child $child, string $how): void
    {
        unset($lane->children[$child->pid]);
        fclose($child->pipe);
        $delivery = $child->delivery;
        if ($delivery !== null && !$delivery->isDecided) {
            $this->failed($lane, $child, $delivery, $how);
        }
        if ($delivery?->lost !== null) {
            $this->tell('ended', $delivery->message, $delivery->lost);
        }
    }

    /** The process has ended before its handler did, perhaps before it had called it. */
    private function failed(Lane $lane, Child $child, Delivery $delivery, string $how): void
    {
        $outcome = $child->hasBegun()
            ? Outcome::failed("the process of the handler has ended ($how)")
            : Outcome::givenBack();
        if ($child->hasBegun()) {
            $this->tell('fail', $delivery->message, $outcome->error);
        }
        $lane->decide($delivery, $outcome);
    }

    /** Ends handlers whose lease is over, or that have reached their time limit. */
    private function watchTime(float $now): void
    {
        foreach ($this->lanes as $lane) {
            foreach ($lane->held as $delivery) {
                if ($delivery->end <= $now) {
                    $lane->lose($delivery, 'lease');
                } elseif ($this->timeLimit !== null && $delivery->begun + $this->timeLimit <= $now) {
                    $this->limit($lane, $delivery);
                }
            }
            foreach ($lane->unanswered as $delivery) {
                if ($delivery->end <= $now && !$delivery->isLate) {
                    $delivery->isLate = true;
                    $this->lost($lane, $delivery, 'lease');
                }
            }
        }
    }

    private function limit(Lane $lane, Delivery $delivery): void
    {
        $outcome = Outcome::failed("the handler took longer than its time limit of $this->timeLimit s");
        $child = $this->childOf($lane, $delivery);
        $this->tell('fail', $delivery->message, $outcome->error);
        $lane->decide($delivery, $outcome);
        $child?->kill();
    }

    private function childOf(Lane $lane, Delivery $delivery): ?Child
    {
        $isIts = static fn (Child $child): bool => $child->delivery === $delivery;
        return current(array_filter($lane->children, $isIts)) ?: null;
    }

    private function killChildren(): void
    {
        foreach ($this->lanes as $lane) {
            foreach ($lane->children as $child) {
                $child->kill();
            }
            foreach ($lane->children as $child) {
                pcntl_waitpid($child->pid, $status);
                if ($child->delivery?->lost !== null) {
                    $this->tell('ended', $child->delivery->message, $child->delivery->lost);
                }
            }
        }
    }

    private function about(Lane $lane, Delivery $delivery): string
    {
        return "queue $lane->queue: message {$delivery->message->id}, attempt {$delivery->message->attempt}";
    }

    private function tell(string $event, ?Message $message = null, ?string $reason = null): void
    {
        $this->announcer?->tell($event, $message, $reason);
    }
}
