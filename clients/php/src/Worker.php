<?php

declare(strict_types=1);

namespace Dq;

use Dq\Worker\Engine;
use Dq\Worker\Lane;

/**
 * Works on queues with processes: this one talks to the server and keeps the leases, and its children call the
 * handlers, one message at a time each. It needs the extensions pcntl and posix.
 *
 * A handler returns nothing, or a result: a text as it is, anything else as JSON. If it throws, its message waits for
 * the backoff of the queue, and is dead when its retries are spent. Reject and Retry say otherwise.
 */
final class Worker
{
    private readonly Server $server;
    /** @var array<string, array{callable(Message): mixed, int}> */
    private array $queues = [];
    /** @var (callable(string, ?Message, ?string): void)|null */
    private $hook = null;
    /** @var callable(string): void */
    private $log;

    /**
     * @param Server|string $url       redis://, rediss:// or unix://
     * @param float|null    $lease     in seconds; null: that of the message, else that of the queue
     * @param float         $grace     for how many seconds handlers may go on when the worker stops
     * @param float|null    $timeLimit how many seconds a handler may take
     * @param string        $name      the last part of the name that operators see, after the host and the process
     * @param string        $prefix    what is put before the name of each queue
     */
    public function __construct(
        #[\SensitiveParameter]
        Server|string $url,
        private readonly ?float $lease = null,
        private readonly float $grace = 30.0,
        private readonly ?float $timeLimit = null,
        private readonly string $name = 'worker',
        private readonly string $prefix = '',
    ) {
        $this->server = is_string($url) ? Server::fromUrl($url) : $url;
        foreach (['lease' => $lease, 'timeLimit' => $timeLimit] as $option => $seconds) {
            if ($seconds !== null && !($seconds >= 0.001 && is_finite($seconds))) {
                throw new \InvalidArgumentException("$option must be a number of seconds above 0");
            }
        }
        if (!($grace >= 0)) {
            throw new \InvalidArgumentException('grace must be a number of seconds from 0');
        }
        $this->log = static function (string $line): void {
            fwrite(STDERR, "$line\n");
        };
    }

    /**
     * Has a handler called for each message of a queue.
     *
     * @param callable(Message): mixed $handler   called in another process: what it opens is its own
     * @param int                      $processes how many messages at a time
     */
    public function consume(string $queue, callable $handler, int $processes = 8): static
    {
        if ($processes < 1) {
            throw new \InvalidArgumentException("processes ($processes) must be at least 1");
        }
        if (isset($this->queues[$queue])) {
            throw new \InvalidArgumentException("the queue $queue has a handler");
        }
        $this->queues[$queue] = [$handler, $processes];
        return $this;
    }

    /**
     * Has a function called with what happens: `ready`, `ok`, `fail`, `reject`, `retry`, `lost` with the reason,
     * `ended` after the process of a lost message is gone, and `stopped`. It is called in a process of its own, one
     * event after the other, so that it delays nothing. If it throws, the first time is logged.
     *
     * @param callable(string, ?Message, ?string): void $hook the event, its message, and the error or the reason
     */
    public function on(callable $hook): static
    {
        $this->hook = $hook;
        return $this;
    }

    /**
     * Writes the log in another way than to the standard error.
     *
     * @param callable(string): void $write
     */
    public function log(callable $write): static
    {
        $this->log = $write;
        return $this;
    }

    /**
     * Works until SIGTERM or SIGINT, and returns the exit code. Handlers then get their grace; a second signal ends
     * them at once.
     */
    public function run(): int
    {
        if (!function_exists('pcntl_fork') || !function_exists('posix_kill')) {
            throw new \RuntimeException('Dq\Worker needs the extensions pcntl and posix');
        }
        if ($this->queues === []) {
            throw new \LogicException('consume() comes before run()');
        }
        $name = gethostname() . ':' . getmypid() . ":$this->name";
        $engine = new Engine($this->server, $name, $this->timeLimit, $this->grace, $this->hook, $this->log);
        $lease = $this->lease === null ? null : (int) round($this->lease * 1000);
        foreach ($this->queues as $queue => [$handler, $processes]) {
            $key = $this->prefix . $queue;
            $engine->lanes[] = new Lane($engine, (string) $queue, $key, $handler, $processes, $lease);
        }
        return $engine->run();
    }
}
