<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Message;

/** A process that calls the handler of a queue, one message at a time, as its parent sees it. */
final class Child
{
    /** An empty answer, by which it says that it calls the handler. */
    private const BEGUN = "\0\0\0\0";
    /** For how long it waits for a message, in seconds: PHP gives up after 60 by default. */
    private const FOREVER = 1 << 30;

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
        stream_set_blocking($pipe, false);
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
        $pair = @stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        if ($pair === false) {
            $cause = error_get_last()['message'] ?? '';
            throw new \RuntimeException("no process can be started, as it could not be reached: $cause");
        }
        [$ours, $theirs] = $pair;
        $pid = @pcntl_fork();
        if ($pid === -1) {
            throw new \RuntimeException('no process can be started: ' . pcntl_strerror(pcntl_get_last_error()));
        }
        if ($pid === 0) {
            fclose($ours);
            $abandon();
            stream_set_timeout($theirs, self::FOREVER);
            // The parent decides when it ends: Ctrl-C and many supervisors send signals to all processes. SIG_IGN would
            // be inherited by the programs that a handler starts, which could not be ended then.
            $goOn = static fn (): null => null;
            pcntl_signal(SIGINT, $goOn);
            pcntl_signal(SIGTERM, $goOn);
            pcntl_signal(SIGCHLD, SIG_DFL);
            self::work($lane->handler, $theirs);
            // Without destructors and what else belongs to the end of the parent.
            posix_kill(getmypid(), SIGKILL);
        }
        fclose($theirs);
        return new self($pid, $lane, $ours);
    }

    /** Has it call the handler. */
    public function begin(Delivery $delivery): void
    {
        $this->delivery = $delivery;
        $this->hasBegun = false;
        stream_set_blocking($this->pipe, true);
        self::write($this->pipe, serialize($delivery->message));
        stream_set_blocking($this->pipe, false);
    }

    /** Returns the outcome of its message, if the handler has ended. */
    public function outcome(): ?Outcome
    {
        while (($bytes = @fread($this->pipe, 1 << 16)) !== '' && $bytes !== false) {
            $this->heard .= $bytes;
        }
        if (strncmp($this->heard, self::BEGUN, 4) === 0) {
            $this->hasBegun = true;
            $this->heard = substr($this->heard, 4);
        }
        if (strlen($this->heard) < 4) {
            return null;
        }
        $size = unpack('N', $this->heard)[1];
        if (strlen($this->heard) < 4 + $size) {
            return null;
        }
        $outcome = unserialize(substr($this->heard, 4, $size), ['allowed_classes' => [Outcome::class]]);
        $this->heard = '';
        return $outcome;
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
        while (($head = self::read($pipe, 4)) !== null) {
            $body = self::read($pipe, unpack('N', $head)[1]);
            if ($body === null) {
                return;
            }
            $process = getmypid();
            fwrite($pipe, self::BEGUN);
            $message = unserialize($body, ['allowed_classes' => [Message::class]]);
            $outcome = Outcome::ofHandler($handler, $message);
            if (getmypid() !== $process) {
                return; // The handler has forked: the outcome is that of the other process.
            }
            self::write($pipe, serialize($outcome));
        }
    }

    /** @param resource $pipe */
    private static function read($pipe, int $size): ?string
    {
        $bytes = '';
        while (strlen($bytes) < $size) {
            $more = fread($pipe, $size - strlen($bytes));
            if ($more === false || ($more === '' && feof($pipe))) {
                return null;
            }
            $bytes .= $more;
        }
        return $bytes;
    }

    /** @param resource $pipe */
    private static function write($pipe, string $body): void
    {
        $bytes = pack('N', strlen($body)) . $body;
        while ($bytes !== '') {
            $sent = @fwrite($pipe, $bytes);
            if ($sent === false || $sent === 0) {
                break; // The other process has ended, which its end shows.
            }
            $bytes = substr($bytes, $sent);
        }
    }
}
