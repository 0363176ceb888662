<?php

declare(strict_types=1);

namespace Dq;

use Dq\Exception\DqException;
use Dq\Keeper\Servers;

/**
 * Keeps the leases of what this process works on. That is done by a process of its own, bin/dq-keeper, because PHP has
 * no threads: however busy this process is, the leases are extended at half time. When this process ends, in whatever
 * way, the keeper gives back what was held, and ends too. If the keeper itself is killed, another one takes its place.
 */
final class Keeper
{
    private const PROGRAM = __DIR__ . '/../bin/dq-keeper';

    /** @var resource|null */
    private $process = null;
    /** @var array<int, resource> its standard input and output */
    private array $pipes = [];
    /** The process that has started it. A fork has to start its own. */
    private int $owner = 0;
    /** @var array<string, array{string, int}> the key and the lease in ms of each receipt that is held */
    private array $held = [];
    /** @var array<string, true> */
    private array $lost = [];
    private string $heard = '';
    private bool $isRestarting = false;
    private bool $isWatched = false;
    private bool $wasAsync = false;
    private mixed $before = null;
    private readonly Servers $servers;

    public function __construct(Server|Servers $servers)
    {
        $this->servers = $servers instanceof Server ? Servers::one($servers) : $servers;
    }

    /**
     * Starts the process before a message is held. It inherits the connections that are open: a pop that is given up on
     * one of them would go on for nobody.
     */
    public function prepare(): void
    {
        $this->forgetIfForked();
        if (!$this->isRunning()) {
            $this->start();
        }
    }

    /**
     * Extends the lease of a message from now on.
     *
     * @param string $key   of the queue, with its prefix
     * @param float  $lease in seconds, with which the message was taken
     */
    public function hold(string $key, string $receipt, float $lease): void
    {
        $this->forgetIfForked();
        $this->held[$receipt] = [$key, (int) round($lease * 1000)];
        $this->watch();
        if ($this->isRunning()) {
            $this->say($this->line($receipt, $this->held[$receipt][1] / 2));
        }
        $this->keepRunning();
    }

    /** Ends that. It comes before the outcome of the message is sent, which makes its lease meaningless. */
    public function drop(string $receipt): void
    {
        unset($this->held[$receipt], $this->lost[$receipt]);
        if ($this->isRunning()) {
            $this->say(['drop', base64_encode($receipt)]);
        }
        if ($this->held === []) {
            $this->unwatch();
        }
    }

    /** Returns whether the message of a receipt that is held was lost. */
    public function isLost(string $receipt): bool
    {
        $this->keepRunning();
        $this->hear();
        return isset($this->lost[$receipt]);
    }

    /** Returns the id of its process, or null. */
    public function pid(): ?int
    {
        return $this->isRunning() ? proc_get_status($this->process)['pid'] : null;
    }

    /** Starts the process again if it has ended while messages are held. */
    public function keepRunning(): void
    {
        if ($this->held === [] || $this->isRestarting || $this->isRunning()) {
            return;
        }
        $this->isRestarting = true;
        try {
            $this->start();
            foreach (array_keys($this->held) as $receipt) {
                // Nobody knows when the one before has extended it last.
                $this->say($this->line((string) $receipt, 0));
            }
        } finally {
            $this->isRestarting = false;
        }
    }

    /** @return list<string> */
    private function line(string $receipt, int|float $wait): array
    {
        [$key, $lease] = $this->held[$receipt];
        return ['hold', base64_encode($receipt), base64_encode($key), (string) $lease, (string) (int) $wait];
    }

    private function isRunning(): bool
    {
        return $this->process !== null && $this->owner === getmypid() && proc_get_status($this->process)['running'];
    }

    private function start(): void
    {
        $this->owner = getmypid();
        // TLS is an extension, which some systems load by a setting. Otherwise it needs no extension.
        $settings = $this->servers->areSecure() ? [] : ['-n'];
        $command = [PHP_BINARY, ...$settings, self::PROGRAM, (string) $this->owner];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $this->pipes);
        if ($process === false) {
            throw new DqException('the process that keeps leases cannot be started: ' . implode(' ', $command));
        }
        $this->process = $process;
        $this->heard = '';
        stream_set_blocking($this->pipes[1], false);
        // Not in the arguments or the environment, which others may read.
        $this->say(['servers', base64_encode(json_encode($this->servers->toArray(), JSON_THROW_ON_ERROR))]);
    }

    /** @param list<string> $words */
    private function say(array $words): void
    {
        // A pipe without a reader is noticed by what starts the next one.
        @fwrite($this->pipes[0], implode(' ', $words) . "\n");
    }

    private function hear(): void
    {
        if ($this->process === null) {
            return;
        }
        $this->heard .= (string) @stream_get_contents($this->pipes[1]);
        while (($end = strpos($this->heard, "\n")) !== false) {
            $receipt = (string) base64_decode(substr($this->heard, 0, $end));
            $this->heard = substr($this->heard, $end + 1);
            if (isset($this->held[$receipt])) {
                $this->lost[$receipt] = true;
                unset($this->held[$receipt]);
            }
        }
    }

    private function forgetIfForked(): void
    {
        if ($this->owner !== 0 && $this->owner !== getmypid()) {
            $this->process = null;
            $this->pipes = [];
            $this->held = $this->lost = [];
            $this->isWatched = false;
        }
    }

    /** The end of the keeper is noticed while a handler runs. */
    private function watch(): void
    {
        if ($this->isWatched || !function_exists('pcntl_async_signals')) {
            return;
        }
        $this->isWatched = true;
        $this->wasAsync = pcntl_async_signals(true);
        $before = pcntl_signal_get_handler(SIGCHLD);
        $this->before = $before;
        $handler = function (int $signal, mixed $about) use ($before): void {
            if ($this->owner === getmypid()) {
                $this->keepRunning();
            }
            if (is_callable($before)) {
                $before($signal, $about);
            }
        };
        pcntl_signal(SIGCHLD, $handler);
    }

    private function unwatch(): void
    {
        if ($this->isWatched) {
            $this->isWatched = false;
            pcntl_signal(SIGCHLD, is_callable($this->before) ? $this->before : SIG_DFL);
            pcntl_async_signals($this->wasAsync);
        }
    }
}
