<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Closure;
use Dq\Client;
use Dq\Clock;
use Dq\Exception\ConnectionLost;
use Dq\Exception\OutOfMemory;
use Dq\Exception\ServerError;
use Error;
use InvalidArgumentException;
use LogicException;
use Throwable;

/** A connection to the server that is opened when it is needed, and again after it broke. */
final class Link
{
    /** The pauses between attempts, in seconds. */
    private const FIRST_PAUSE = 0.02;
    private const LONGEST_PAUSE = 1.0;

    private ?Client $client = null;

    /** Whether the last command of `repeat` may have been done by an attempt whose reply was lost. */
    private bool $mayBeDone = false;

    /**
     * @param Closure(): Client $open
     * @param string $address for messages: host and port, or the path of a socket
     */
    public function __construct(private Closure $open, public readonly string $address)
    {
    }

    /**
     * Sends a command once.
     *
     * @throws ServerError|ServerUnreachable
     */
    public function call(string|int ...$words): mixed
    {
        try {
            return $this->client()->call(...$words);
        } catch (ServerError $error) {
            if ($error->isTransient()) {
                $this->close(); // The next connection may find the new master.
            }
            throw $error;
        } catch (ConnectionLost $error) {
            $this->mayBeDone = $this->mayBeDone || $error->mayHaveRun;
            throw $this->unreachable($error, $error->mayHaveRun ? (string) $words[0] : 'to connect');
        }
    }

    /**
     * Sends a command until it is answered, which the server must do only once: a push with an id, an ack.
     *
     * @param list<string|int> $words
     * @throws ServerError|ServerUnreachable the last one, when `$seconds` have passed
     */
    public function repeat(float $seconds, array $words): mixed
    {
        $this->mayBeDone = false;
        $until = Clock::now() + $seconds;
        $pause = self::FIRST_PAUSE;
        while (true) {
            try {
                return $this->call(...$words);
            } catch (ServerError | ServerUnreachable $error) {
                $left = $until - Clock::now();
                if (self::isFinal($error) || $left <= 0) {
                    throw $error;
                }
            }
            usleep((int) (min($pause, $left) * 1_000_000)); // The last attempt comes at the end.
            $pause = min(self::LONGEST_PAUSE, $pause * 2);
        }
    }

    /** Whether "there is no such message", the answer of the last `repeat`, may mean that an earlier attempt did it. */
    public function mayBeDone(): bool
    {
        return $this->mayBeDone;
    }

    public function close(): void
    {
        $client = $this->client;
        $this->client = null;
        try {
            $client?->close();
        } catch (Throwable) {
            // It is closed.
        }
    }

    private static function isFinal(ServerError|ServerUnreachable $error): bool
    {
        return $error instanceof ServerError && ! $error->isNotNow() && ! $error instanceof OutOfMemory;
    }

    private function client(): Client
    {
        if ($this->client !== null) {
            return $this->client;
        }
        try {
            return $this->client = ($this->open)();
        } catch (ServerError $error) {
            throw $error;
        } catch (Error | InvalidArgumentException | LogicException $error) {
            throw $error; // The settings are wrong, or an extension is missing.
        } catch (Throwable $error) {
            throw $this->unreachable($error, 'to connect');
        }
    }

    private function unreachable(Throwable $error, string $what): ServerUnreachable
    {
        $this->close();
        return ServerUnreachable::at($this->address, $what, $error);
    }
}
