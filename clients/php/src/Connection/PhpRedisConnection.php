<?php

declare(strict_types=1);

namespace Dq\Connection;

use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;

/** A connection of the extension redis. */
final class PhpRedisConnection implements Connection
{
    /** How errors of the server begin, which the extension throws as it throws lost connections. */
    private const SERVER_ERROR = '/\A[A-Z]{2,} /';
    private const NOT_SENT = '/refused|No such file|getaddrinfo|unreachable|not known|went away/i';
    /** How many seconds a reply may take if the connection has no timeout of its own. */
    private const TIMEOUT = 5.0;

    private readonly float $timeout;
    /** What is set again after each command: the program may use the connection for others. */
    private readonly float $restored;

    public function __construct(private readonly \Redis|\RedisCluster $redis)
    {
        $timeout = (float) $redis->getOption(\Redis::OPT_READ_TIMEOUT);
        $this->timeout = $timeout > 0 ? $timeout : self::TIMEOUT;
        // To set 0 would have each command fail at once, although a connection with 0 waits as long as php.ini says.
        $this->restored = $timeout > 0 ? $timeout : (float) ini_get('default_socket_timeout');
    }

    public function call(array $words, float $block = 0.0): mixed
    {
        $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $this->timeout + $block);
        $this->redis->clearLastError();
        try {
            $reply = $this->send($words);
        } catch (\RedisException | \RedisClusterException $error) {
            throw $this->translated($error);
        } finally {
            $this->redis->setOption(\Redis::OPT_READ_TIMEOUT, $this->restored);
        }
        $error = $this->redis->getLastError();
        $this->redis->clearLastError();
        if ($error !== null && ($reply === false || $reply === null)) {
            throw ServerError::of($error);
        }
        return self::withNulls($reply);
    }

    public function close(): void
    {
        try {
            $this->redis->close();
        } catch (\RedisException | \RedisClusterException) {
            // It is closed.
        }
    }

    public function address(): string
    {
        if ($this->redis instanceof \RedisCluster) {
            return 'the cluster';
        }
        $host = (string) $this->redis->getHost();
        return $host === '' || $host[0] === '/' ? $host : "$host:{$this->redis->getPort()}";
    }

    public function prefix(): string
    {
        return (string) $this->redis->getOption(\Redis::OPT_PREFIX);
    }

    /** @param list<string> $words */
    private function send(array $words): mixed
    {
        if ($this->redis instanceof \Redis) {
            return $this->redis->rawCommand(...$words);
        }
        // The first argument says which node: that of the key.
        $key = in_array($words[0], ['DQ.MPOP'], true) ? $words[2] : ($words[1] ?? '');
        return $this->redis->rawCommand($key, ...$words);
    }

    private function translated(\Exception $error): \Exception
    {
        $text = $error->getMessage();
        if (preg_match(self::SERVER_ERROR, $text)) {
            return ServerError::of($text);
        }
        // A reply that comes too late would be taken for that of the next command.
        $this->close();
        $address = $this->address();
        return ConnectionLost::at($address, $text, !preg_match(self::NOT_SENT, $text), $error);
    }

    /** The extension returns false for null. No command of dq answers false. */
    private static function withNulls(mixed $reply): mixed
    {
        return match (true) {
            $reply === false => null,
            is_array($reply) => array_map(self::withNulls(...), $reply),
            default => $reply,
        };
    }
}
