<?php

declare(strict_types=1);

namespace Dq;

use Dq\Connection\Connection;
use Dq\Connection\PhpRedisConnection;
use Dq\Connection\PredisConnection;
use Dq\Connection\SocketConnection;
use Dq\Exception\ConnectionLost;
use Dq\Exception\OutOfMemory;
use Dq\Exception\ServerError;

/**
 * Queues as producers, consumers and operators use them. Times are seconds (int or float) or a DateInterval, and points
 * in time are a DateTimeInterface. What the server answers is in milliseconds, as in the reference of the commands.
 */
final class Client
{
    use Concerns\Pushes;
    use Concerns\Consumes;
    use Concerns\Operates;

    /** The longest pause between two attempts of a push, in seconds. */
    private const LONGEST_PAUSE = 2.0;
    private const FIRST_PAUSE = 0.05;

    private readonly Connection $connection;
    private readonly string $prefix;

    /**
     * @param Connection|\Redis|\RedisCluster|\Predis\ClientInterface|Server|string $redis
     *        a connection, or the URL of a server: redis://, rediss://, unix://
     * @param float       $pushTimeout for how many seconds a push that is not answered is repeated under the same id;
     *                                 0: it is sent once
     * @param string|null $prefix      what is put before the name of each queue; null: what the connection puts before
     *                                 each key
     */
    public function __construct(
        #[\SensitiveParameter]
        Connection|\Redis|\RedisCluster|\Predis\ClientInterface|Server|string $redis,
        private readonly float $pushTimeout = 10.0,
        ?string $prefix = null,
    ) {
        if ($pushTimeout < 0) {
            throw new \InvalidArgumentException("pushTimeout ($pushTimeout) is negative; 0 sends pushes once");
        }
        $this->connection = match (true) {
            $redis instanceof Connection => $redis,
            is_string($redis) => new SocketConnection(Server::fromUrl($redis)),
            $redis instanceof Server => new SocketConnection($redis),
            $redis instanceof \Predis\ClientInterface => new PredisConnection($redis),
            default => new PhpRedisConnection($redis),
        };
        $this->prefix = $prefix ?? $this->connection->prefix();
    }

    /** Returns the key of a queue. */
    public function key(string $queue): string
    {
        return $this->prefix . $queue;
    }

    /** Returns where the server is, for people. */
    public function address(): string
    {
        return $this->connection->address();
    }

    /** Closes the connection. The next command opens another one. */
    public function close(): void
    {
        $this->connection->close();
    }

    /**
     * Sends any command, once, and returns its reply. Maps are lists of fields and values.
     *
     * @throws ServerError    if the server refuses it
     * @throws ConnectionLost if it is not answered
     */
    public function call(string|int ...$words): mixed
    {
        return $this->connection->call(array_map('strval', array_values($words)));
    }

    /**
     * Sends a command that concerns a queue, once.
     *
     * @param list<string> $words
     * @param float        $block for how many seconds the command itself may wait
     */
    private function ask(string $command, string $queue, array $words = [], float $block = 0.0): mixed
    {
        try {
            return $this->connection->call([$command, $this->key($queue), ...$words], $block);
        } catch (ServerError $error) {
            throw $error->concerning("$command $queue");
        }
    }

    /**
     * Sends a command until it is answered, for some seconds.
     *
     * @param list<string> $words
     *
     * @return array{mixed, bool} the reply, and whether an earlier attempt may have been carried out
     */
    private function repeat(string $command, string $queue, array $words, float $seconds, float $block = 0.0): array
    {
        $end = Clock::now() + $seconds;
        $pause = self::FIRST_PAUSE;
        $first = null;
        $mayHaveRun = false;
        while (true) {
            try {
                return [$this->ask($command, $queue, $words, $block), $mayHaveRun];
            } catch (ServerError | ConnectionLost $error) {
                $isLost = $error instanceof ConnectionLost;
                if (!$isLost && !$error->isNotNow() && !$error instanceof OutOfMemory) {
                    throw $error;
                }
                $ran = $isLost && $error->mayHaveRun;
                // A later attempt may have been cut off before it knew why it fails.
                $first = $first === null || ($ran && !$mayHaveRun) ? $error : $first;
                $mayHaveRun = $mayHaveRun || $ran;
            }
            // Those that were refused at the same time do not all return together.
            $wait = $pause * random_int(750, 1000) / 1000;
            $now = Clock::now();
            if ($wait + $now >= $end) {
                throw $first;
            }
            usleep((int) ($wait * 1_000_000));
            $pause = min(self::LONGEST_PAUSE, $pause * 2);
        }
    }
}
