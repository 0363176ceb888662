<?php

declare(strict_types=1);

namespace Dq\Worker;

/** Starts processes that their parent talks to, in frames: four bytes of length, and the body. */
final class Fork
{
    /** For how long they wait for a frame, in seconds: PHP gives up after 60 by default. */
    private const FOREVER = 1 << 30;

    /**
     * Starts one.
     *
     * @param callable(): void         $abandon lets go, in the new process, of what belongs to the parent
     * @param callable(resource): void $work    what it does until the parent has gone
     *
     * @return array{int, resource} the process, and the pipe to it, which does not block
     *
     * @throws \RuntimeException if none can be started
     */
    public static function start(callable $abandon, callable $work): array
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
            $goOn = static function (): void {
            };
            pcntl_signal(SIGINT, $goOn);
            pcntl_signal(SIGTERM, $goOn);
            pcntl_signal(SIGCHLD, SIG_DFL);
            $work($theirs);
            // Without destructors and what else belongs to the end of the parent.
            posix_kill(getmypid(), SIGKILL);
        }
        fclose($theirs);
        stream_set_blocking($ours, false);
        return [$pid, $ours];
    }

    /** Returns a frame. */
    public static function frame(string $body): string
    {
        return pack('N', strlen($body)) . $body;
    }

    /**
     * Waits for a frame, and returns its body; null: the other process has ended.
     *
     * @param resource $pipe
     */
    public static function read($pipe): ?string
    {
        $head = self::bytes($pipe, 4);
        return $head === null ? null : self::bytes($pipe, unpack('N', $head)[1]);
    }

    /** @param resource $pipe */
    public static function write($pipe, string $body): void
    {
        $bytes = self::frame($body);
        while ($bytes !== '') {
            $sent = @fwrite($pipe, $bytes);
            if ($sent === false || $sent === 0) {
                break; // The other process has ended, which its end shows.
            }
            $bytes = substr($bytes, $sent);
        }
    }

    /** @param resource $pipe */
    private static function bytes($pipe, int $size): ?string
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
}
