<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use Redis;
use RedisException;
use RuntimeException;

/** A server with the module on a free port, in a directory of its own. */
final class TestServer
{
    private static int $made = 0;

    private ?Process $process = null;

    /** Of a node of a cluster. */
    public int $busPort = 0;

    private function __construct(public readonly int $port, private string $directory, private array $options)
    {
    }

    /** @param list<string> $options of the server */
    public static function start(array $options = [], bool $withModule = true): self
    {
        if ($withModule) {
            $module = getenv('DQ_MODULE') ?: throw new RuntimeException('DQ_MODULE is not set');
            array_push($options, '--loadmodule', $module);
        }
        $server = new self(self::freePort(), self::directory('server'), $options);
        try {
            $server->boot();
        } catch (RuntimeException $error) {
            if (! str_contains($error->getMessage(), 'Address already in use')) {
                throw $error;
            }
            return self::start($options, false); // Another program has taken the port.
        }
        return $server;
    }

    /** @param string $file its configuration */
    public static function sentinel(string $file): self
    {
        $server = new self(self::freePort(), self::directory('sentinel'), [$file, '--sentinel']);
        $server->boot();
        return $server;
    }

    public function boot(): void
    {
        $isSentinel = in_array('--sentinel', $this->options, true);
        $program = getenv('DQ_SERVER') ?: 'redis-server';
        $place = ['--port', (string) $this->port, '--bind', '127.0.0.1', '--dir', $this->directory];
        $command = $isSentinel
            ? [$program, ...$this->options, ...$place]
            : [$program, ...$place, '--save', '', '--appendonly', 'yes', ...$this->options];
        $this->process = new Process($command, "{$this->directory}/log", []);
        $until = microtime(true) + 60;
        while (! $this->answers()) {
            if (microtime(true) > $until || ! $this->process->isRunning()) {
                throw new RuntimeException("the server does not start: {$this->process->output()}");
            }
            usleep(10_000);
        }
    }

    private function answers(): bool
    {
        try {
            return (bool) $this->redis()->ping();
        } catch (RedisException $error) {
            return str_contains($error->getMessage(), 'NOAUTH');
        }
    }

    public function redis(): Redis
    {
        $redis = new Redis();
        @$redis->connect('127.0.0.1', $this->port, 5);
        return $redis;
    }

    public function ask(string ...$words): mixed
    {
        return $this->redis()->rawCommand(...$words);
    }

    /** Ends the server; its data stay for the next `boot`. */
    public function down(): void
    {
        $this->process?->kill();
    }

    public function stop(): void
    {
        $this->down();
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    /** A test that fails does not reach the end of its servers, for which PHP would wait when it ends itself. */
    public function __destruct()
    {
        $this->down();
    }

    /** A new directory for the files of a test. */
    public static function directory(string $what): string
    {
        $place = rtrim(getenv('TMPDIR') ?: sys_get_temp_dir(), '/');
        $directory = sprintf('%s/laravel-%s-%d-%d', $place, $what, getmypid(), self::$made++);
        mkdir($directory, 0777, true);
        return $directory;
    }

    public static function freePort(): int
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
        fclose($socket);
        return $port;
    }
}
