<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Message;

/** A process that calls the handler of a queue, one message at a time, as its parent sees it. */
final class Child
{
    /** An empty answer, by which it says that it calls the handler. */
    private const BEGUN = '';
    /** @var resource|null the pipe to the parent, in the process that calls handlers */
    private static $parent = null;

    /** What it works on. */
    public ?Delivery $delivery = null;
    private string $heard = '';
    private bool $isKilled = false;
    /** Whether the handler was called for the message. */
    private bool $hasBegun = false;

    /**
     * @param resource $pipe
     */
    private function __construct(public readonly int $pid, public readonly Lane $lane, public readonly mixed $pipe)
    {
    }

    /**
     * Starts one.
     *
     * @param callable(): void $abandon lets go of what belongs to the parent
     *
     * @throws \RuntimeException if none can be started
     */
    public static function start(Lane $lane, callable $abandon): self
    {
        $work = static fn ($pipe) => self::work($lane->handler, $pipe);
        [$pid, $pipe] = Fork::start($abandon, $work);
        return new self($pid, $lane, $pipe);
    }

    /** Has it call the handler. */
    public function begin(Delivery $delivery): void
    {
        $this->delivery = $delivery;
        $this->hasBegun = false;
        stream_set_blocking($this->pipe, true);
        Fork::write($this->pipe, serialize($delivery->message));
        stream_set_blocking($this->pipe, false);
    }

    /** Returns the outcome of its message, if the handler has ended. */
    public function outcome(): ?Outcome
    {
        while (($bytes = @fread($this->pipe, 1 << 16)) !== '' && $bytes !== false) {
            $this->heard .= $bytes;
        }
        while (($body = $this->nextBody()) !== null) {
            if ($body === self::BEGUN) {
                $this->hasBegun = true;
                continue;
            }
            $said = unserialize($body, ['allowed_classes' => [Outcome::class]]);
            if ($said instanceof Outcome) {
                return $said;
            }
            [$receipt, $checkpoint] = $said;
            if ($this->delivery?->message->receipt === $receipt) {
                $this->delivery->checkpoint = $checkpoint;
            }
        }
        return null;
    }

    /** Has the parent of this process, in which a handler runs, store a checkpoint. */
    public static function save(string $receipt, string $checkpoint): void
    {
        if (self::$parent === null) {
            throw new \LogicException('a checkpoint is saved by a handler of a Dq\Worker; see DQ.EXTEND');
        }
        Fork::write(self::$parent, serialize([$receipt, $checkpoint]));
    }

    public function hasBegun(): bool
    {
        return $this->hasBegun;
    }

    public function kill(): void
    {
        $this->isKilled = true;
        posix_kill($this->pid, SIGKILL);
    }

    public function isFree(): bool
    {
        return $this->delivery === null && !$this->isKilled;
    }

    /** Returns how it has ended, or null if it runs. */
    public function end(): ?string
    {
        if (pcntl_waitpid($this->pid, $status, WNOHANG) === 0) {
            return null;
        }
        return pcntl_wifsignaled($status) ? 'signal ' . pcntl_wtermsig($status) : 'code ' . pcntl_wexitstatus($status);
    }

    /**
     * What the child does until the parent has gone.
     *
     * @param resource $pipe
     */
    private static function work(callable $handler, $pipe): void
    {
        self::$parent = $pipe;
        while (($body = Fork::read($pipe)) !== null) {
            $process = getmypid();
            Fork::write($pipe, self::BEGUN);
            $message = unserialize($body, ['allowed_classes' => [Message::class]]);
            $outcome = Outcome::ofHandler($handler, $message);
            if (getmypid() !== $process) {
                return; // The handler has forked: the outcome is that of the other process.
            }
            Fork::write($pipe, serialize($outcome));
        }
    }

    /** Returns the body of the next frame that has arrived. */
    private function nextBody(): ?string
    {
        if (strlen($this->heard) < 4) {
            return null;
        }
        $size = unpack('N', $this->heard)[1];
        if (strlen($this->heard) < 4 + $size) {
            return null;
        }
        $body = substr($this->heard, 4, $size);
        $this->heard = substr($this->heard, 4 + $size);
        return $body;
    }
}
