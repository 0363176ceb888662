<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\Exception\DqException;

/** A server with the module on a free port, in a directory of its own. */
final class TestServer
{
    public readonly int $port;
    public readonly string $directory;
    /** @var resource */
    private $process;

    /** @param list<string> $options of the server */
    public function __construct(array $options = [])
    {
        $this->port = self::freePort();
        $this->directory = self::makeDirectory();
        $module = getenv('DQ_MODULE') ?: throw new \RuntimeException('DQ_MODULE is not set');
        $place = ['--port', (string) $this->port, '--bind', '127.0.0.1', '--dir', $this->directory, '--save', ''];
        $command = [getenv('DQ_SERVER') ?: 'redis-server', ...$place, '--loadmodule', $module, ...$options];
        $nothing = ['file', '/dev/null', 'a'];
        $this->process = proc_open($command, [$nothing, $nothing, $nothing], $pipes);
        TestCase::eventually('the server answers', $this->answers(...), 60);
    }

    /**
     * Starts one that speaks TLS on another port, and has a password and a unix socket.
     *
     * @return array{self, string, string} the server, the URL for TLS, and the URL of the socket
     */
    public static function withTls(): array
    {
        $files = self::makeDirectory();
        $name = '-subj /CN=localhost -addext subjectAltName=DNS:localhost';
        $files = "$files/";
        $make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 $name -keyout {$files}key -out {$files}cert";
        exec("$make 2>&1", $said, $code);
        TestCase::assertSame(0, $code, implode("\n", $said));
        $port = self::freePort();
        $tls = ['--tls-port', "$port", '--tls-cert-file', "{$files}cert", '--tls-key-file', "{$files}key"];
        $more = ['--tls-ca-cert-file', "{$files}cert", '--tls-auth-clients', 'no', '--requirepass', 'secret'];
        $server = new self([...$tls, ...$more, '--unixsocket', "{$files}socket"]);
        $url = "rediss://:secret@localhost:$port/1?cafile={$files}cert";
        return [$server, $url, "unix://{$files}socket?db=3&password=secret"];
    }

    public function __destruct()
    {
        posix_kill($this->pid(), SIGCONT);
        posix_kill($this->pid(), SIGKILL);
        proc_close($this->process);
        exec('rm -rf ' . escapeshellarg($this->directory));
    }

    public function pid(): int
    {
        return proc_get_status($this->process)['pid'];
    }

    public function url(): string
    {
        return "redis://127.0.0.1:$this->port";
    }

    public function client(): Client
    {
        return new Client($this->url());
    }

    /** Stops the server without its noticing, and lets it go on some seconds later. */
    public function freezeFor(float $seconds): void
    {
        posix_kill($this->pid(), SIGSTOP);
        exec("(sleep $seconds; kill -CONT {$this->pid()}) >/dev/null 2>&1 &");
    }

    public static function makeDirectory(): string
    {
        $directory = rtrim(getenv('TMPDIR') ?: '/tmp', '/') . '/php-' . bin2hex(random_bytes(6));
        mkdir($directory);
        return $directory;
    }

    private function answers(): bool
    {
        try {
            return $this->client()->call('PING') === 'PONG';
        } catch (DqException $error) {
            return str_contains($error->getMessage(), 'NOAUTH');
        }
    }

    public static function freePort(): int
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
        fclose($socket);
        return $port;
    }
}
