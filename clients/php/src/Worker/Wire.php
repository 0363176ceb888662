<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Clock;
use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;
use Dq\Resp;
use Dq\Server;

/**
 * A connection that never waits: each command has a function that is called with its reply, or with what went wrong.
 * After ConnectionLost it is of no more use.
 */
final class Wire
{
    /** How long opening a connection may take, in seconds. */
    private const OPENING = 5.0;

    /** @var resource|null */
    private $stream;
    private Resp $resp;
    private string $out = '';
    /** @var list<Asked> what was sent, and not answered yet */
    private array $asked = [];
    /** @var list<array{list<string|int>, callable, float}> what waits until the connection is logged in */
    private array $early = [];
    private bool $isConnected = false;
    private bool $isSecured;
    /** How many replies to the greeting are to come. */
    private int $greetings;
    private float $opened;

    /**
     * @param (callable(array<mixed>): void)|null $onMessage called with each reply to no command
     *
     * @throws ConnectionLost
     */
    public function __construct(private readonly Server $server, private $onMessage = null)
    {
        $this->opened = Clock::now();
        $this->stream = $server->begin();
        stream_set_blocking($this->stream, false);
        $this->isSecured = !$server->secure;
        $this->resp = new Resp();
        $greeting = $server->greeting();
        $this->greetings = count($greeting);
        foreach ($greeting as $words) {
            $this->out .= Resp::command($words);
        }
    }

    /**
     * @param list<string|int>                                            $words
     * @param callable(mixed|ServerError|ConnectionLost): void $then
     * @param float                                                       $patience how long the reply may take
     */
    public function send(array $words, callable $then, float $patience): void
    {
        if ($this->greetings > 0) {
            // They would be carried out without a password, or in another database, if the greeting fails.
            $this->early[] = [$words, $then, $patience];
            return;
        }
        $this->asked[] = new Asked($then, Clock::now() + $patience);
        $this->out .= Resp::command($words);
    }

    /** @return resource|null what to wait for */
    public function stream()
    {
        return $this->stream;
    }

    /** Returns whether to wait until it can be written to. */
    public function wantsToWrite(): bool
    {
        return !$this->isConnected || $this->out !== '';
    }

    /** Returns when the first reply is late, by Clock. */
    public function deadline(): float
    {
        $deadline = $this->isConnected && $this->greetings === 0 ? INF : $this->opened + self::OPENING;
        return isset($this->asked[0]) ? min($deadline, $this->asked[0]->deadline) : $deadline;
    }

    /** Sends and reads what can be, and calls the functions of what was answered. */
    public function turn(): void
    {
        if ($this->stream === null) {
            return;
        }
        try {
            if ($this->connect()) {
                $this->write();
                $this->read();
            }
            if (Clock::now() >= $this->deadline()) {
                throw ConnectionLost::at($this->server->address(), 'it does not answer', true);
            }
        } catch (ConnectionLost $lost) {
            $this->close($lost);
        }
    }

    /** Closes the connection. What was not answered is lost. */
    public function close(?ConnectionLost $lost = null): void
    {
        if ($this->stream === null) {
            return;
        }
        // Programs that this one has started have copies: without this, a pop that was given up would go on for nobody.
        @stream_socket_shutdown($this->stream, STREAM_SHUT_RDWR);
        fclose($this->stream);
        $this->stream = null;
        $lost ??= new ConnectionLost('the connection was closed', true);
        $isLoggedIn = $this->greetings === 0;
        $asked = [...array_column($this->asked, 'then'), ...array_column($this->early, 1)];
        $this->asked = $this->early = [];
        if (!$isLoggedIn && $lost->mayHaveRun) {
            $lost = new ConnectionLost($lost->getMessage(), false, $lost);
        }
        foreach ($asked as $then) {
            $then($lost);
        }
    }

    public function isOpen(): bool
    {
        return $this->stream !== null;
    }

    /** Lets go of the connection in a child, without a word to the server. */
    public function abandon(): void
    {
        // To close a connection with TLS would end that of the parent, too.
        if ($this->stream !== null && !$this->server->secure) {
            fclose($this->stream);
            $this->stream = null;
        }
    }

    private function connect(): bool
    {
        if (!$this->isConnected) {
            $read = null;
            $write = [$this->stream];
            $except = null;
            if (@stream_select($read, $write, $except, 0, 0) !== 1) {
                return false;
            }
            if (stream_socket_get_name($this->stream, true) === false) {
                throw ConnectionLost::at($this->server->address(), 'Connection refused', false);
            }
            $this->isConnected = true;
        }
        if (!$this->isSecured) {
            $done = @stream_socket_enable_crypto($this->stream, true, STREAM_CRYPTO_METHOD_TLS_CLIENT);
            if ($done === false) {
                throw ConnectionLost::at($this->server->address(), 'TLS cannot be set up with it', false);
            }
            $this->isSecured = $done === true;
        }
        return $this->isSecured;
    }

    private function write(): void
    {
        while ($this->out !== '') {
            $sent = @fwrite($this->stream, $this->out);
            if ($sent === false) {
                throw ConnectionLost::at($this->server->address(), 'the connection is closed', true);
            }
            if ($sent === 0) {
                return;
            }
            $this->out = substr($this->out, $sent);
        }
    }

    private function read(): void
    {
        while (($bytes = @fread($this->stream, 1 << 20)) !== '' && $bytes !== false) {
            $this->resp->feed($bytes);
        }
        $isClosed = feof($this->stream);
        while ($this->stream !== null && $this->resp->next($reply)) {
            $this->answer($reply);
        }
        if ($isClosed && $this->stream !== null) {
            throw ConnectionLost::at($this->server->address(), 'the connection was closed', true);
        }
    }

    private function answer(mixed $reply): void
    {
        $isError = $reply instanceof ServerError;
        if ($this->greetings > 0 || ($isError && $reply->isRefusedConnection())) {
            if ($isError) {
                throw ConnectionLost::at($this->server->address(), $reply->getMessage(), false);
            }
            $this->greetings--;
            $this->sendEarly();
            return;
        }
        if ($this->onMessage !== null && is_array($reply) && ($reply[0] ?? null) === 'message') {
            ($this->onMessage)($reply);
            return;
        }
        $asked = array_shift($this->asked);
        if ($asked !== null) {
            ($asked->then)($reply);
        }
    }

    private function sendEarly(): void
    {
        if ($this->greetings === 0) {
            $early = $this->early;
            $this->early = [];
            foreach ($early as [$words, $then, $patience]) {
                $this->send($words, $then, $patience);
            }
            $this->write();
        }
    }
}
