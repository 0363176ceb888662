<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Closure;
use Dq\Clock;
use Dq\Exception\ServerError;
use Dq\Keeper;
use Dq\Reply;
use RuntimeException;
use Throwable;

/** What a worker does with messages: takes them, keeps their leases, and reports their outcomes. */
final class Deliveries
{
    /** How much longer than its timeout a job may take, in seconds, if nothing keeps its lease. */
    private const AFTER_TIMEOUT = 10;

    /** How long a worker pauses while its server cannot be reached, in seconds. */
    private const PAUSE = 1;

    /** The default of `queue:work --timeout`, in seconds. */
    private int $workerTimeout = 60;

    private bool $waits = true;

    /** @var list<string> the queues that the worker asks for, the most important one first */
    private array $wanted = [];

    private bool $asked = true;

    /** @var list<string> the queues of pops whose replies were lost, which may have had messages for this name */
    private array $lost = [];

    private string $name = '';

    /** The process whose name it is: a fork has its own. */
    private int $named = 0;

    /**
     * @param Link $waiting the connection of pops
     * @param Link $commands the connection of everything else
     * @param Closure(string): string $key the key of a queue
     * @param float $blockFor in seconds; 0: a pop does not wait
     * @param int $lease in ms
     */
    public function __construct(
        private Link $waiting,
        private Link $commands,
        private Closure $key,
        public readonly float $blockFor,
        private int $lease,
        private ?Keeper $keeper,
        private bool $oneKeyAtATime
    ) {
    }

    /** @param int $timeout of jobs that have none, in seconds; 0: none */
    public function workFor(int $timeout, bool $waits): void
    {
        $this->workerTimeout = $timeout;
        $this->waits = $waits;
    }

    /** @param list<string> $queues from which the worker is going to pop in turn */
    public function beginRound(array $queues): void
    {
        if (! $this->asked) {
            sleep(self::PAUSE); // All queues of the last round were paused: the worker does not sleep by itself.
        }
        $this->wanted = $queues;
        $this->asked = false;
    }

    /**
     * @throws ServerError|ServerUnreachable
     */
    public function take(string $queue): ?Delivery
    {
        if (! in_array($queue, $this->wanted, true)) {
            return $this->pop([$queue]);
        }
        // The first queue begins a round, also if another listener has kept the event that announces one from us.
        if ($this->asked && $queue !== $this->wanted[0]) {
            return null; // The first pop of this round has waited for all.
        }
        $this->asked = true;
        try {
            return $this->pop($this->wanted);
        } catch (ServerUnreachable $error) {
            report($error);
            sleep(self::PAUSE);
            return null;
        }
    }

    /** Whether the message was still this worker's. */
    public function ack(Delivery $delivery): bool
    {
        return (int) $this->settle($delivery, 'DQ.ACK') === 1 || $this->commands->mayBeDone();
    }

    /** Makes the message dead; returns whether it was still this worker's. */
    public function bury(Delivery $delivery, string $error): bool
    {
        $state = $this->settle($delivery, 'DQ.NACK', 'DEAD', 'ERROR', $error);
        return $state !== null || $this->commands->mayBeDone();
    }

    /**
     * @param int $delay in ms
     * @return string|null the new state of the message; null: it was no longer this worker's
     */
    public function release(Delivery $delivery, int $delay, ?string $error, bool $counts): ?string
    {
        $options = ['DELAY', $delay];
        if ($error !== null) {
            array_push($options, 'ERROR', $error);
        }
        if (! $counts) {
            $options[] = 'NOCOUNT';
        }
        $state = $this->settle($delivery, 'DQ.NACK', ...$options);
        return $state ?? ($this->commands->mayBeDone() ? 'ready' : null);
    }

    /** Gives a message back before this process kills itself. If that fails, the keeper does it afterwards. */
    public function giveUp(Delivery $delivery, string $error): void
    {
        try {
            $this->commands->call('DQ.NACK', $delivery->key, $delivery->receipt, 'ERROR', $error);
            $this->keeper?->drop($delivery->receipt);
        } catch (ServerError | ServerUnreachable $failed) {
            report($failed);
        }
    }

    /** Whether another delivery of the message has begun or may begin, or the message is gone. */
    public function isLost(Delivery $delivery): bool
    {
        if ($this->keeper?->isLost($delivery->receipt)) {
            return true;
        }
        $message = Reply::map($this->commands->call('DQ.GET', $delivery->key, $delivery->id) ?: []);
        return ($message['receipt'] ?? null) !== $delivery->receipt;
    }

    /** Sends an outcome for as long as the lease may last. */
    private function settle(Delivery $delivery, string $command, string|int ...$options): mixed
    {
        $this->keeper?->drop($delivery->receipt);
        $words = [$command, $delivery->key, $delivery->receipt, ...$options];
        return $this->commands->repeat($this->lease / 1000, $words);
    }

    /** @param list<string> $queues */
    private function pop(array $queues): ?Delivery
    {
        try {
            $this->keeper?->prepare(); // Before the connection of pops is opened.
        } catch (Throwable) {
            // The first message says so.
        }
        $this->giveBackLostReplies($queues);
        try {
            $inTurn = $this->oneKeyAtATime && count($queues) > 1;
            $delivery = $inTurn ? $this->popInTurn($queues) : $this->popFirst($queues);
            if ($delivery !== null) {
                $this->keep($delivery);
                $this->name = ''; // It is held under that name, which is not to be released.
                $this->lost = [];
            }
        } catch (ServerUnreachable $error) {
            $this->lost = array_values(array_unique([...$this->lost, ...$queues]));
            throw $error;
        }
        return $delivery;
    }

    /**
     * What a pop delivered whose reply was lost was delivered to nobody. Its name holds nothing else.
     *
     * @param list<string> $wanted the queues that are asked next
     * @throws ServerError|ServerUnreachable if one of these fails; another one may be on a node that is away
     */
    private function giveBackLostReplies(array $wanted): void
    {
        $failed = [];
        foreach ($this->lost as $queue) {
            try {
                $this->waiting->call('DQ.RELEASE', ($this->key)($queue), $this->consumer(), 'NOCOUNT');
            } catch (ServerError | ServerUnreachable $error) {
                if (in_array($queue, $wanted, true)) {
                    throw $error;
                }
                $failed[] = $queue;
            }
        }
        $this->lost = $failed;
    }

    /** @param list<string> $queues */
    private function popFirst(array $queues): ?Delivery
    {
        $options = ['LEASE', $this->lease, 'AS', $this->consumer()];
        if ($this->waits && $this->blockFor > 0) {
            array_push($options, 'BLOCK', max(1, (int) ($this->blockFor * 1000)));
        }
        $names = [];
        foreach ($queues as $queue) {
            $names[($this->key)($queue)] = $queue;
        }
        $keys = array_keys($names);
        if (count($keys) === 1) {
            $messages = $this->waiting->call('DQ.POP', $keys[0], ...$options);
            return $messages ? $this->delivery($queues[0], (string) $keys[0], $messages[0]) : null;
        }
        $found = $this->waiting->call('DQ.MPOP', count($keys), ...$keys, ...$options);
        return $found ? $this->delivery($names[$found[0]], $found[0], $found[1][0]) : null;
    }

    /**
     * In a cluster the queues may be on several servers. Each is asked in turn, a twentieth of a second apart.
     *
     * @param list<string> $queues
     */
    private function popInTurn(array $queues): ?Delivery
    {
        $until = Clock::now() + ($this->waits ? $this->blockFor : 0);
        while (true) {
            foreach ($queues as $queue) {
                $key = ($this->key)($queue);
                $messages = $this->waiting->call('DQ.POP', $key, 'LEASE', $this->lease, 'AS', $this->consumer());
                if ($messages) {
                    return $this->delivery($queue, $key, $messages[0]);
                }
            }
            if (Clock::now() >= $until) {
                return null;
            }
            usleep(50_000);
        }
    }

    /** @param array{string, string, int, string} $message */
    private function delivery(string $queue, string $key, array $message): Delivery
    {
        [$id, $payload, $attempt, $receipt] = $message;
        return new Delivery($queue, $key, $id, $payload, (int) $attempt, $receipt);
    }

    private function keep(Delivery $delivery): void
    {
        if ($this->keeper !== null) {
            $this->hold($delivery, $this->keeper);
            return;
        }
        $timeout = json_decode($delivery->payload, true)['timeout'] ?? $this->workerTimeout;
        $needed = is_numeric($timeout) && $timeout > 0 ? (int) (($timeout + self::AFTER_TIMEOUT) * 1000) : 0;
        if ($needed > $this->lease) {
            $this->commands->call('DQ.EXTEND', $delivery->key, $delivery->receipt, 'LEASE', $needed);
        }
    }

    /** @throws RuntimeException if the keeper cannot be started; the message is given back uncounted */
    private function hold(Delivery $delivery, Keeper $keeper): void
    {
        try {
            $keeper->hold($delivery->key, $delivery->receipt, $this->lease / 1000);
        } catch (Throwable $error) {
            $keeper->drop($delivery->receipt);
            $this->commands->call('DQ.NACK', $delivery->key, $delivery->receipt, 'NOCOUNT');
            throw new RuntimeException(
                "The process that keeps leases cannot be started: {$error->getMessage()}. Without it, the option "
                . "'keep' of the dq connection has to be 'none'.",
                0,
                $error
            );
        }
    }

    /**
     * The name of this process, under which the server lists what it holds. Its end is random, as workers in containers
     * may all have the same host and process, and what a failed pop took is given back by this name. It is another one
     * after each delivery, because the jobs of earlier pops may still run.
     */
    private function consumer(): string
    {
        if ($this->name === '' || $this->named !== getmypid()) {
            $this->named = getmypid();
            $random = bin2hex(random_bytes(4));
            $this->name = substr((string) gethostname(), 0, 80) . ":{$this->named}:laravel:{$random}";
        }
        return $this->name;
    }
}
