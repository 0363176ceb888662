<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Journal;
use Dq\Reply;
use Illuminate\Contracts\Console\Kernel;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Support\Facades\Facade;
use RuntimeException;
use Symfony\Component\Console\Output\BufferedOutput;

/** A server and an application, whose workers are processes. */
trait RunsApplication
{
    /** How long it waits for what must happen, in seconds. */
    private float $patience = 60.0;

    protected TestServer $server;
    protected Application $app;

    /** The directory of the application. */
    protected string $directory;

    /** @var list<Process> */
    private array $processes = [];

    /** @var array<string, mixed>|null */
    private ?array $settings = null;

    private function startApplication(): void
    {
        $this->server = TestServer::start();
        $this->directory = TestServer::directory('app');
        $this->makeDirectory();
        $this->boot();
    }

    /** @param bool $keeps whether the files of the application stay */
    private function stopApplication(bool $keeps): void
    {
        foreach ($this->processes as $process) {
            $process->kill();
        }
        $this->app->flush();
        Facade::clearResolvedInstances();
        $this->server->stop();
        if (! $keeps) {
            exec('rm -rf ' . escapeshellarg($this->directory));
        }
    }

    /** The queue connection of this test: `redis` or `dq`. */
    protected function connection(): string
    {
        return 'dq';
    }

    /** @return array<string, mixed> options of the connection `dq` that replace or extend config/queue.php */
    protected function queueSettings(): array
    {
        return ['block_for' => 1];
    }

    /** @param array<string, mixed> $settings of the connection `dq`, from now on */
    protected function restartWith(array $settings): void
    {
        $this->settings = $settings;
        $this->boot();
    }

    /** @return array<string, mixed>|null of failed jobs; null: a table */
    protected function failedSettings(): ?array
    {
        return null;
    }

    /** @return array<string, mixed> of `database.redis` */
    protected function redisSettings(): array
    {
        return ['client' => 'phpredis', 'default' => ['host' => '127.0.0.1', 'port' => $this->server->port]];
    }

    /** Makes the application again, as another process has it. */
    protected function boot(): void
    {
        foreach ($this->environment() as $name => $value) {
            putenv("{$name}={$value}");
        }
        Facade::clearResolvedInstances();
        $this->app = require __DIR__ . '/app/bootstrap.php';
        $this->app->make(Kernel::class)->bootstrap();
        $this->restoreHandlers();
    }

    /**
     * Runs a command of artisan in this process, and returns what it prints.
     *
     * @param array<string, mixed> $arguments and options
     */
    protected function artisan(string $command, array $arguments = []): string
    {
        $output = new BufferedOutput();
        $this->app->make(Kernel::class)->call($command, $arguments, $output);
        return $output->fetch();
    }

    protected function work(string ...$options): Process
    {
        return $this->process('queue:work', ...$options);
    }

    protected function process(string ...$words): Process
    {
        return $this->php(__DIR__ . '/app/artisan', ...$words);
    }

    protected function php(string ...$words): Process
    {
        $output = "{$this->directory}/output";
        return $this->processes[] = new Process([PHP_BINARY, ...$words], $output, $this->environment());
    }

    /**
     * Starts a proxy that loses one reply to a command of this name, that to the first one or another.
     *
     * @return array{Process, array<string, mixed>} it, and the settings of `database.redis` that lead through it
     */
    protected function loseOneReplyTo(string $command, int $number = 1): array
    {
        $port = TestServer::freePort();
        $words = [(string) $port, (string) $this->server->port, $command, (string) $number];
        $proxy = new Process([PHP_BINARY, __DIR__ . '/proxy.php', ...$words], "{$this->directory}/proxy", []);
        $this->processes[] = $proxy;
        $this->eventually('the proxy listens', fn (): bool => str_contains($proxy->output(), 'ready'));
        return [$proxy, ['client' => 'phpredis', 'default' => ['host' => '127.0.0.1', 'port' => $port]]];
    }

    /** Runs workers until nothing is left to do, and returns what was printed. */
    protected function workUntilEmpty(string ...$options): string
    {
        $process = $this->work('--stop-when-empty', '--sleep=0', ...$options);
        $this->eventually('the worker ends', fn (): bool => ! $process->isRunning());
        return $process->output();
    }

    protected function eventually(string $what, callable $holds): void
    {
        $until = microtime(true) + $this->patience * (float) (getenv('DQ_PATIENCE') ?: 1);
        while (! $holds()) {
            if (microtime(true) > $until) {
                throw new RuntimeException("{$what}: not yet. The journal:\n" . $this->text(Journal::path())
                    . "The log:\n" . substr($this->text($this->directory . '/laravel.log'), -3000)
                    . "The output:\n" . $this->text($this->directory . '/output'));
            }
            usleep(5000);
        }
    }

    protected function untilWritten(string $line, int $times = 1): void
    {
        $this->eventually(
            "the journal has '{$line}' {$times} times",
            fn (): bool => count(array_keys($this->journal(), $line, true)) >= $times
        );
    }

    protected function untilOneFailedJob(): void
    {
        $this->eventually('one failed job', fn (): bool => count($this->app['queue.failer']->all()) === 1);
    }

    /** @return list<string> the lines of the journal that begin with one of these words; all if there are none */
    protected function journal(string ...$kinds): array
    {
        $lines = [];
        foreach (explode("\n", trim($this->text(Journal::path()))) as $line) {
            $words = explode(' ', trim($line), 2)[1] ?? '';
            if ($words !== '' && ($kinds === [] || in_array(explode(' ', $words)[0], $kinds, true))) {
                $lines[] = $words;
            }
        }
        return $lines;
    }

    /** When a line was written, in Unix ms. */
    protected function writtenAt(string $line): int
    {
        foreach (explode("\n", $this->text(Journal::path())) as $written) {
            [$time, $words] = explode(' ', $written . ' ', 2);
            if (trim($words) === $line) {
                return (int) $time;
            }
        }
        throw new RuntimeException("the journal does not have '{$line}'");
    }

    /** @return list<array<string, mixed>> the messages of a queue in this state */
    protected function peek(string $key, string $state): array
    {
        return array_map(Reply::map(...), $this->server->ask('DQ.PEEK', $key, $state, 'COUNT', '1000') ?: []);
    }

    /** @return array<string, mixed>|null the message */
    protected function message(string $id, string $key = 'default'): ?array
    {
        return Reply::map($this->server->ask('DQ.GET', $key, $id) ?: []) ?: null;
    }

    /** How often the server was sent a command, such as `push`. */
    protected function calls(string $command): int
    {
        preg_match("/dq\\.{$command}:calls=(\\d+)/i", $this->server->ask('INFO', 'commandstats'), $found);
        return (int) ($found[1] ?? 0);
    }

    protected function log(): string
    {
        return $this->text($this->directory . '/laravel.log');
    }

    protected static function milliseconds(): int
    {
        return (int) (microtime(true) * 1000);
    }

    private function text(string $path): string
    {
        return is_file($path) ? (string) file_get_contents($path) : '';
    }

    /** @return array<string, string> */
    private function environment(): array
    {
        return [
            'DQ_APP' => $this->directory,
            'QUEUE_CONNECTION' => $this->connection(),
            'DQ_QUEUE' => json_encode($this->settings ?? $this->queueSettings(), JSON_FORCE_OBJECT),
            'DQ_FAILED' => json_encode($this->failedSettings()),
            'DQ_REDIS' => json_encode($this->redisSettings()),
        ];
    }

    private function makeDirectory(): void
    {
        $places = ['bootstrap/cache', 'storage/framework/cache/data', 'storage/framework/views', 'vendor/composer'];
        foreach ($places as $place) {
            mkdir("{$this->directory}/{$place}", 0777, true);
        }
        symlink(__DIR__ . '/app/config', $this->directory . '/config');
        file_put_contents("{$this->directory}/composer.json", '{}');
        // What Composer writes when the package is installed by path: the provider is discovered there.
        $package = json_decode((string) file_get_contents(__DIR__ . '/../../composer.json'), true);
        file_put_contents("{$this->directory}/vendor/composer/installed.json", json_encode(['packages' => [$package]]));
        Database::make("{$this->directory}/database.sqlite");
    }

    /** Laravel installs handlers of errors, which PHPUnit wants back. */
    private function restoreHandlers(): void
    {
        restore_error_handler();
        restore_exception_handler();
    }
}
