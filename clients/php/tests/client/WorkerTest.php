<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\Exception\NotKept;

/** What the conformance suite does not drive: handlers that misbehave, hooks, logs, TLS. */
final class WorkerTest extends TestCase
{
    private TestServer $server;
    private Client $client;
    private string $output;
    /** @var resource of proc_open */
    private $worker;
    /** Code that the program of the worker runs first. */
    private string $before = '';

    protected function setUp(): void
    {
        parent::setUp();
        $this->server = new TestServer();
        $this->client = $this->server->client();
        $this->output = TestServer::makeDirectory() . '/output';
    }

    public function testAHandlerThatExitsFailsItsMessageAlone(): void
    {
        $this->startWorker('static fn ($m) => $m->payload === "exit" ? exit(3) : null', '->consume("q", %s, 2)');
        $this->client->push('q', 'exit', id: 'm', retries: 0);
        $this->client->push('q', 'x', id: 'n');
        $message = self::eventually('it is dead', fn () => $this->client->dead('q')[0] ?? null);
        $this->assertSame('the process of the handler has ended (code 3)', $message['error']);
        self::eventually('the other one is done', fn (): bool => $this->client->get('q', 'n') === null);
    }

    public function testAHandlerThatForksHasOneOutcome(): void
    {
        $fork = 'static function ($m) { if (pcntl_fork() === 0) { usleep(1000); throw new Exception("no"); } }';
        $this->startWorker($fork);
        foreach (['m', 'n'] as $id) {
            $this->client->push('q', 'x', id: $id);
            self::eventually('it is done', fn (): bool => $this->client->get('q', $id) === null);
        }
        $this->assertSame([2, 0], [$this->client->info('q')['acked'], $this->client->info('q')['nacked']]);
    }

    public function testAHookAndALogThatThrowStopNothing(): void
    {
        $throw = 'static function () { throw new Exception("on purpose"); }';
        $this->startWorker('static fn ($m) => null', "->consume('q', %s)->on($throw)->log($throw)", false);
        $this->client->push('q', 'x', id: 'm');
        self::eventually('it is done', fn (): bool => $this->client->get('q', 'm') === null);
        $this->assertStringContainsString('on purpose', $this->log());
    }

    public function testAHookThatBlocksOrEndsItsProcessDelaysNothing(): void
    {
        $hook = 'static function ($event, $m) {
            fwrite(STDERR, "heard $event\n");
            $event === "ok" && ($m->payload === "exit" ? exit(3) : sleep(60));
        }';
        $this->startWorker('static fn ($m) => null', "->consume('q', %s)->on($hook)", false, 'lease: 0.5');
        foreach (['exit', 'x', 'x', str_repeat('x', 1 << 22)] as $payload) {
            $id = $this->client->push('q', $payload);
            self::eventually('it is done', fn (): bool => $this->client->get('q', $id) === null);
        }
        $logged = 'the process of the hook has ended, and is started again';
        self::eventually('it is started again', fn (): bool => str_contains($this->log(), $logged));
        proc_terminate($this->worker, SIGTERM);
        $this->assertSame(0, $this->exitCode(), $this->log());
        $this->assertSame(2, substr_count($this->log(), 'heard ok'));
    }

    public function testAHookThatFailsIsLoggedOnce(): void
    {
        $throw = 'static function ($event) { throw new Exception("on purpose"); }';
        $this->startWorker('static fn ($m) => null', "->consume('q', %s)->on($throw)", false);
        $this->client->push('q', 'x', id: 'm');
        self::eventually('it is done', fn (): bool => $this->client->get('q', 'm') === null);
        proc_terminate($this->worker, SIGTERM);
        $this->assertSame(0, $this->exitCode(), $this->log());
        $this->assertSame(1, substr_count($this->log(), "has failed at 'ready': Exception: on purpose"));
        $this->assertSame(1, substr_count($this->log(), 'on purpose'));
    }

    public function testTheNextAttemptFindsTheLastCheckpoint(): void
    {
        $handler = 'static function ($m) {
            if ($m->attempt === 1) {
                foreach (range(1, 1000) as $page) {
                    $m->save("page $page");
                }
                try {
                    $m->save(str_repeat("x", 65537));
                } catch (InvalidArgumentException $error) {
                    throw new Dq\Retry($error->getMessage(), after: 0);
                }
            }
            if ($m->attempt === 2) {
                $m->save("$m->checkpoint of 1000");
                usleep(300_000);
                exit(3);
            }
            return "$m->checkpoint: $m->error";
        }';
        $this->client->create('q', backoff: [0.001, 0.001]);
        $this->startWorker($handler);
        $this->client->push('q', 'x', id: 'm', retain: 60);
        $done = self::eventually('it is done', fn () => $this->client->get('q', 'm')['result'] ?? null);
        $this->assertSame('page 1000 of 1000: the process of the handler has ended (code 3)', $done);
        $this->assertStringContainsString('a checkpoint of 65537 bytes is longer than 65536', $this->log());
    }

    public function testProcessesWaitForMessagesAsLongAsTheyLike(): void
    {
        $idle = 'ini_set("default_socket_timeout", "1")';
        $this->startWorker("$idle ? static fn (\$m) => getmypid() : null", '->consume("q", %s, 1)');
        $ask = fn (): ?string => $this->client->pushAndWait('q', 'x', 10);
        $first = $ask();
        sleep(2);
        $this->assertSame($first, $ask());
    }

    public function testAMessageThatNoHandlerHasBegunIsGivenBackUncounted(): void
    {
        $this->startWorker('static fn ($m) => "$m->attempt " . getmypid()', '->consume("q", %s, 1)');
        $this->client->push('q', 'x', id: 'n', retain: 60);
        $first = self::eventually('it is done', fn () => $this->client->get('q', 'n')['result'] ?? null);
        $process = (int) substr($first, 2);
        posix_kill($process, SIGSTOP);
        $this->client->push('q', 'x', id: 'm', retain: 60);
        self::eventually('it is delivered', fn (): bool => $this->client->get('q', 'm')['state'] === 'inflight');
        posix_kill($process, SIGKILL);
        $second = self::eventually('it is done', fn () => $this->client->get('q', 'm')['result'] ?? null);
        $this->assertSame('1', $second[0]);
        $this->assertNotSame($first, $second);
    }

    public function testTheLogSaysWhereAHandlerFailedAndWhy(): void
    {
        $fail = 'throw new LogicException("no oven", 0, new DomainException("no power"))';
        $this->startWorker("static fn (\$m) => $fail");
        $this->client->push('q', 'the secret', id: 'm', retries: 0);
        self::eventually('it is dead', fn (): bool => str_contains($this->log(), '; now dead'));
        $said = 'queue q: message m, attempt 1: LogicException: no oven; now dead';
        $this->assertStringContainsString($said, $this->log());
        $this->assertMatchesRegularExpression('/at \S+program.php:\d+/', $this->log());
        $this->assertStringContainsString('caused by DomainException: no power', $this->log());
        $this->assertStringNotContainsString('the secret', $this->log());
    }

    public function testAPrefixIsThatOfTheKeys(): void
    {
        $this->startWorker('static fn ($m) => $m->queue', '->consume("q", %s)', true, 'prefix: "shop:"');
        $this->client->push('shop:q', 'x', id: 'm', retain: 60);
        $done = self::eventually('it is done', fn () => $this->client->get('shop:q', 'm')['result'] ?? null);
        $this->assertSame('q', $done);
    }

    public function testAWorkerReachesAServerWithTls(): void
    {
        [$this->server, $url] = TestServer::withTls();
        $this->client = new Client($url);
        $exits = 'static fn ($m) => $m->payload === "exit" ? exit(3) : str_repeat("x", 60000)';
        $this->startWorker($exits, '->consume("q", %s, 2)', true, 'lease: 0.5', $url);
        $this->client->push('q', 'exit', id: 'm', retries: 0);
        self::eventually('it is dead', fn (): bool => $this->client->len('q', 'dead') === 1);
        $ids = $this->client->pushMany('q', array_fill(0, 50, str_repeat('y', 50_000)), retain: 60);
        $isDone = fn (string $id): bool => strlen($this->client->get('q', $id)['result'] ?? '') === 60_000;
        foreach ($ids as $id) {
            self::eventually('it is done', static fn (): bool => $isDone($id));
        }
        // A child that began later has closed nothing that belongs to its parent.
        $this->assertStringNotContainsString('cannot be reached', $this->log());
    }

    public function testProgramsThatHandlersStartCanBeTerminated(): void
    {
        // Once it has said something, it is no longer a fork of PHP, which takes the signal for its own.
        $handler = 'static function ($m) {
            $program = proc_open(["sh", "-c", "echo begun; exec sleep 60"], [1 => ["pipe", "w"]], $pipes);
            fgets($pipes[1]);
            proc_terminate($program);
            proc_close($program);
        }';
        $this->startWorker($handler, '->consume("q", %s, 1)', true, 'timeLimit: 5');
        $this->client->push('q', 'x', id: 'm', retain: 60, retries: 0);
        self::eventually('it is done', fn (): bool => $this->client->get('q', 'm')['state'] === 'done');
    }

    public function testAResultThatCannotBeKeptIsTold(): void
    {
        $results = '["long" => str_repeat("x", 70_000), "none" => NAN, "empty" => ""]';
        $this->startWorker("static fn (\$m) => {$results}[\$m->payload]");
        $this->assertNull($this->client->pushAndWait('q', 'empty', 10));
        foreach (['long', 'none'] as $payload) {
            try {
                $this->client->pushAndWait('q', $payload, 10);
                $this->fail("$payload is kept");
            } catch (NotKept $error) {
                $this->assertStringContainsString('could not be kept', $error->getMessage());
            }
        }
    }

    public function testAStopWithoutAServerSaysWhatItCouldNotReport(): void
    {
        $this->startWorker('static fn ($m) => sleep(60)', '->consume("q", %s, 1)', true, 'grace: 1');
        $this->client->push('q', 'x', id: 'm');
        self::eventually('it is delivered', fn (): bool => $this->client->get('q', 'm')['state'] === 'inflight');
        posix_kill($this->server->pid(), SIGKILL);
        proc_terminate($this->worker, SIGTERM);
        $this->assertSame(1, $this->exitCode(), $this->log());
        $this->assertMatchesRegularExpression('/could not report 1 messages.*\n.*stopped; /', $this->log());
    }

    public function testAProcessThatCannotBeStartedIsStartedLater(): void
    {
        $forbidden = $this->forbidForks('$calls > 3');
        $handler = 'static fn ($m) => $m->payload === "exit" ? exit(3) : usleep(5_000_000)';
        $this->startWorker($handler, '->consume("q", %s, 2)', true, 'lease: 2');
        $this->client->push('q', 'x', id: 'busy', retain: 60);
        $this->client->push('q', 'exit', id: 'm', retries: 0);
        self::eventually('it is logged', fn (): bool => str_contains($this->log(), 'no process can be started'));
        self::eventually('the outcome is sent', fn (): bool => $this->client->len('q', 'dead') === 1);
        self::eventually('the other one is done', fn (): bool => $this->client->get('q', 'busy')['state'] === 'done');
        $this->client->push('q', 'exit', id: 'n', retries: 0);
        self::eventually('it is dead', fn (): bool => $this->client->len('q', 'dead') === 2);
        unlink($forbidden);
        $this->client->push('q', 'x', id: 'last', retain: 60);
        self::eventually('it is done', fn (): bool => $this->client->get('q', 'last')['state'] === 'done');
        $this->assertSame(1, $this->client->get('q', 'busy')['attempt']);
    }

    public function testAWorkerThatCannotStartLeavesNoProcess(): void
    {
        $this->forbidForks('$calls > 1');
        $this->startWorker('static fn ($m) => null', '->consume("q", %s, 2)', false);
        $this->assertSame(255, $this->exitCode());
        $this->assertStringContainsString('no process can be started', $this->log());
        preg_match('/child (\d+)/', $this->log(), $found);
        $this->assertFalse(posix_kill((int) $found[1], 0), 'the child that was started is gone');
    }

    /**
     * Has forks of the worker fail while a condition holds, which knows $calls.
     *
     * @return string the file without which they do not fail
     */
    private function forbidForks(string $condition): string
    {
        $file = TestServer::makeDirectory() . '/forbidden.php';
        $code = <<<'PHP'
            <?php
            namespace Dq\Worker;
            function pcntl_fork(): int
            {
                static $calls = 0;
                $calls++;
                clearstatcache();
                if ((CONDITION) && file_exists(__FILE__)) {
                    return -1;
                }
                $child = \pcntl_fork();
                $child > 0 && fwrite(STDERR, "child $child\n");
                return $child;
            }
            PHP;
        file_put_contents($file, str_replace('CONDITION', $condition, $code));
        $this->before = "require '$file';\n";
        return $file;
    }

    private function exitCode(): int
    {
        $state = [];
        $hasEnded = function () use (&$state): bool {
            $state = proc_get_status($this->worker);
            return !$state['running'];
        };
        self::eventually('it ends', $hasEnded, 20);
        return $state['exitcode'];
    }

    /**
     * @param string $handler the code of the handler, which takes the place of %s in $calls
     */
    private function startWorker(
        string $handler,
        string $calls = '->consume("q", %s)',
        bool $isHeard = true,
        string $options = '',
        ?string $url = null,
    ): void {
        $url ??= $this->server->url();
        $hook = $isHeard ? '->on(static function ($event) { fwrite(STDERR, "$event\n"); })' : '';
        $made = "(new Dq\\Worker('$url', $options))" . sprintf($calls, $handler);
        $this->worker = $this->start("{$this->before}exit({$made}{$hook}->run());", $this->output);
        if ($isHeard) {
            self::eventually('it consumes', fn (): bool => str_contains($this->log(), 'ready'));
        }
    }

    private function log(): string
    {
        return (string) @file_get_contents($this->output);
    }
}
