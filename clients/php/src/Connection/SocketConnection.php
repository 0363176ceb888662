<?php

declare(strict_types=1);

namespace Dq\Connection;

use Dq\Clock;
use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;
use Dq\Resp;
use Dq\Server;

/** A connection that needs no extension and no other package. */
final class SocketConnection implements Connection
{
    /** @var resource|null */
    private $stream = null;
    private Resp $resp;
    /** The process that has opened it. */
    private int $owner = 0;

    public function __construct(private readonly Server $server)
    {
        $this->resp = new Resp();
    }

    public function call(array $words, float $block = 0.0): mixed
    {
        if ($this->stream !== null && $this->wasClosed()) {
            $this->close();
        }
        if ($this->stream === null) {
            $this->open();
        }
        $reply = $this->exchange($words, $block);
        if ($reply instanceof ServerError) {
            if ($reply->isRefusedConnection()) {
                $this->close();
            }
            throw $reply;
        }
        return $reply;
    }

    public function close(): void
    {
        if ($this->stream !== null) {
            if ($this->owner === getmypid()) {
                // Programs that this one has started have copies: without this, a pop that was given up would go on for
                // nobody. A fork only lets go of its copy.
                @stream_socket_shutdown($this->stream, STREAM_SHUT_RDWR);
            }
            fclose($this->stream);
            $this->stream = null;
        }
        $this->resp = new Resp();
    }

    public function address(): string
    {
        return $this->server->address();
    }

    public function prefix(): string
    {
        return '';
    }

    private function open(): void
    {
        $this->stream = $this->server->open($this->server->timeout);
        $this->owner = getmypid();
        stream_set_blocking($this->stream, false);
        try {
            foreach ($this->server->greeting() as $words) {
                $reply = $this->exchange($words, 0.0);
                if ($reply instanceof ServerError) {
                    throw $reply;
                }
            }
        } catch (ConnectionLost $lost) {
            throw new ConnectionLost($lost->getMessage(), false, $lost);
        } catch (ServerError $refused) {
            $this->close();
            throw $refused;
        }
    }

    /** Returns whether the server has closed the connection while it was idle. */
    private function wasClosed(): bool
    {
        $read = [$this->stream];
        $write = $except = null;
        // Nothing is expected: what can be read is the end, or a reply to a command that nobody waits for any more.
        return stream_select($read, $write, $except, 0, 0) !== 0;
    }

    /** @param list<string> $words */
    private function exchange(array $words, float $block): mixed
    {
        $end = Clock::now() + $this->server->timeout + $block;
        $out = Resp::command($words);
        while ($out !== '') {
            $this->wait($end, true);
            $sent = @fwrite($this->stream, $out);
            if ($sent === false) {
                $this->fail('the connection is closed');
            }
            $out = substr($out, $sent);
        }
        while (!$this->next($reply)) {
            $this->receive($end);
        }
        return $reply;
    }

    /** Takes all that has arrived, as a reply is read from its beginning each time. Waits if that is nothing. */
    private function receive(float $end): void
    {
        $arrived = '';
        while (!in_array($bytes = @fread($this->stream, 65536), ['', false], true)) {
            $arrived .= $bytes;
        }
        if ($arrived === '' && ($bytes === false || feof($this->stream))) {
            $this->fail('the connection was closed');
        }
        if ($arrived === '') {
            $this->wait($end, false);
        }
        $this->resp->feed($arrived);
    }

    /** @throws ConnectionLost if what has arrived is no reply */
    private function next(mixed &$reply): bool
    {
        try {
            return $this->resp->next($reply);
        } catch (ConnectionLost $lost) {
            $this->close();
            throw $lost;
        }
    }

    private function wait(float $end, bool $toWrite): void
    {
        while (true) {
            $left = $end - Clock::now();
            if ($left <= 0) {
                $this->fail('it does not answer');
            }
            $read = $toWrite ? null : [$this->stream];
            $write = $toWrite ? [$this->stream] : null;
            $except = null;
            $seconds = (int) $left;
            // A signal ends the wait, which then goes on.
            $found = @stream_select($read, $write, $except, $seconds, (int) (($left - $seconds) * 1_000_000));
            if ($found !== false && $found > 0) {
                return;
            }
        }
    }

    private function fail(string $cause): never
    {
        $this->close();
        throw ConnectionLost::at($this->address(), $cause, true);
    }
}
