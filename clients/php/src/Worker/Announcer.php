<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Message;

/**
 * Calls the hook of a worker in a process of its own, one event after the other. A hook may throw, block or end its
 * process: nothing that keeps a lease or reports an outcome waits for it.
 */
final class Announcer
{
    /** How many bytes of events may wait. Those beyond are dropped. */
    private const MOST_WAITING = 1 << 26;
    /** How much is written at once, in bytes. */
    private const PART = 1 << 16;
    /** After how many seconds a process that could not be started is tried again. */
    private const AGAIN = 1.0;

    /** @var resource|null */
    private $pipe = null;
    private int $pid = 0;
    /** @var \SplQueue<string> frames that are not sent, or not wholly */
    private \SplQueue $waiting;
    /** How many bytes of the first one are sent. */
    private int $sent = 0;
    private int $size = 0;
    private float $nextTry = 0.0;
    private bool $hasEnded = false;
    private bool $hasDropped = false;

    /**
     * @param callable(string, ?Message, ?string): void $hook
     * @param callable(): void                          $abandon lets go of what belongs to the parent, in the child
     * @param callable(string): void                    $log
     */
    public function __construct(
        private readonly mixed $hook,
        private readonly mixed $abandon,
        private readonly mixed $log,
    ) {
        $this->waiting = new \SplQueue();
    }

    /** @throws \RuntimeException if the process cannot be started */
    public function start(): void
    {
        [$this->pid, $this->pipe] = Fork::start($this->abandon, $this->work(...));
    }

    public function tell(string $event, ?Message $message, ?string $reason): void
    {
        $frame = Fork::frame(serialize([$event, $message, $reason]));
        if ($this->size + strlen($frame) > self::MOST_WAITING) {
            if (!$this->hasDropped) {
                ($this->log)('error: the hook is too slow, so that it does not hear of all events');
            }
            $this->hasDropped = true;
            return;
        }
        $this->size += strlen($frame);
        $this->waiting->enqueue($frame);
        $this->turn();
    }

    /** Sends what can be sent without waiting. */
    public function turn(): void
    {
        while (!$this->waiting->isEmpty() && $this->isReady()) {
            $sent = @fwrite($this->pipe, substr($this->waiting->bottom(), $this->sent, self::PART));
            if ($sent === 0) {
                return;
            }
            if ($sent === false) {
                $this->ended();
                continue;
            }
            $this->sent += $sent;
            if ($this->sent === strlen($this->waiting->bottom())) {
                $this->next();
            }
        }
    }

    /** @return resource|null what is to be writable before turn() is called */
    public function stream()
    {
        return $this->waiting->isEmpty() ? null : $this->pipe;
    }

    /** Lets go of the process in another one. */
    public function abandon(): void
    {
        if ($this->pipe !== null) {
            fclose($this->pipe);
            $this->pipe = null;
        }
    }

    /** Gives the hook so many seconds for what it has not heard, and ends the process. */
    public function close(float $seconds): void
    {
        $end = Clock::now() + $seconds;
        for ($this->turn(); $this->stream() !== null && Clock::now() < $end; $this->turn()) {
            $read = $except = null;
            $write = [$this->stream()];
            @stream_select($read, $write, $except, 0, 50_000);
        }
        if ($this->pipe === null) {
            return;
        }
        // Programs that were started meanwhile may have copies.
        @stream_socket_shutdown($this->pipe, STREAM_SHUT_WR);
        while (($ended = pcntl_waitpid($this->pid, $status, WNOHANG)) === 0 && Clock::now() < $end) {
            usleep(1000);
        }
        if ($ended === 0) {
            posix_kill($this->pid, SIGKILL);
            pcntl_waitpid($this->pid, $status);
        }
        $this->abandon();
    }

    private function isReady(): bool
    {
        if ($this->pipe === null && Clock::now() >= $this->nextTry) {
            try {
                $this->start();
            } catch (\RuntimeException) {
                $this->nextTry = Clock::now() + self::AGAIN;
            }
        }
        return $this->pipe !== null;
    }

    /** The hook has ended its process. */
    private function ended(): void
    {
        posix_kill($this->pid, SIGKILL);
        pcntl_waitpid($this->pid, $status);
        $this->abandon();
        if ($this->sent > 0) {
            $this->next();
        }
        if (!$this->hasEnded) {
            ($this->log)('error: the process of the hook has ended, and is started again');
        }
        $this->hasEnded = true;
    }

    private function next(): void
    {
        $this->size -= strlen($this->waiting->dequeue());
        $this->sent = 0;
    }

    /**
     * What the process does until the parent has gone.
     *
     * @param resource $pipe
     */
    private function work($pipe): void
    {
        $process = getmypid();
        $hasFailed = false;
        while (($body = Fork::read($pipe)) !== null) {
            [$event, $message, $reason] = unserialize($body, ['allowed_classes' => [Message::class]]);
            try {
                ($this->hook)($event, $message, $reason);
            } catch (\Throwable $error) {
                $said = get_class($error) . ": {$error->getMessage()}";
                if (!$hasFailed) {
                    ($this->log)("the hook has failed at '$event': $said; that it fails is not logged again");
                }
                $hasFailed = true;
            }
            if (getmypid() !== $process) {
                return; // The hook has forked: the other process goes on.
            }
        }
    }
}
