<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use App\Jobs\RemindCustomer;
use Dq\Laravel\DqConnector;
use Dq\Laravel\DqFailedJobProvider;
use Dq\Laravel\DqQueue;
use Illuminate\Contracts\Console\Kernel;
use Illuminate\Support\Facades\Queue;

/** The code blocks of the pages about Laravel, except sessions with the server, which are replayed with all others. */
final class DocumentationTest extends TestCase
{
    private const README = __DIR__ . '/../../README.md';
    private const RECIPE = __DIR__ . '/../../../../docs/recipes/laravel.md';

    private bool $inTable = true;

    protected function failedSettings(): ?array
    {
        return $this->inTable ? null : ['driver' => 'dq', 'queues' => ['default', 'mail']];
    }

    public function testTheConfigurationsAreAccepted(): void
    {
        $found = 0;
        foreach ([self::README, self::RECIPE] as $page) {
            foreach ($this->blocks($page, 'php') as $block) {
                if (! str_starts_with($block, '// config/queue.php')) {
                    continue;
                }
                $found++;
                $config = $this->evaluate("return [\n{$block}\n];");
                $this->app['config']->set('queue', array_replace_recursive($this->app['config']['queue'], $config));
                $connection = (new DqConnector($this->app))->connect($this->app['config']['queue.connections.dq']);
                $this->assertInstanceOf(DqQueue::class, $connection);
            }
        }
        $this->assertSame(3, $found);
    }

    public function testTheFailedDriverOfThePagesIsThatOfDq(): void
    {
        $this->inTable = false;
        $this->boot();
        $this->assertInstanceOf(DqFailedJobProvider::class, $this->app['queue.failer']);
    }

    public function testTheExamplesOfJobsRun(): void
    {
        foreach ([self::README, self::RECIPE] as $page) {
            foreach ($this->blocks($page, 'php') as $block) {
                if (! str_starts_with($block, '// config/queue.php') && $this->isNew($block)) {
                    $this->evaluate($block);
                }
            }
        }
        $this->assertSame(3, Queue::connection()->pendingSize(), 'the three jobs of the customer');
        $this->assertSame(1, Queue::connection()->delayedSize(), 'the first reminder');
        $this->artisan('queue:work', ['--once' => true]);
        $this->assertStringContainsString('Order 1001 is not paid yet.', $this->log());
        $this->assertSame(2, Queue::connection()->pendingSize());
    }

    public function testTheCommandsExist(): void
    {
        $known = array_keys($this->app->make(Kernel::class)->all());
        foreach ([self::README, self::RECIPE] as $page) {
            preg_match_all('/queue:[a-z-]+/', (string) file_get_contents($page), $names);
            $this->assertSame([], array_diff($names[0], $known));
        }
    }

    public function testTheProgramOfSupervisorStartsAWorker(): void
    {
        [$block] = $this->blocks(self::README, 'ini');
        $program = parse_ini_string(str_replace('%', '', $block), true, INI_SCANNER_RAW)['program:shop-queue'];
        $this->assertSame(1, preg_match('/artisan (queue:work .*)$/', $program['command'], $command));
        Job::dispatch('a')->onQueue('high');
        $worker = $this->process(...explode(' ', $command[1]));
        $this->untilWritten('done a');
        $this->assertTrue($worker->isRunning());
    }

    public function testTheCommandsOfTheShellRun(): void
    {
        // What the driver redis has left.
        $this->server->ask('RPUSH', 'laravel_database_queues:default', '{"uuid":"u-1","job":"x","attempts":0}');
        foreach ([self::README, self::RECIPE] as $page) {
            foreach ($this->blocks($page, 'sh') as $block) {
                foreach (explode("\n", trim($block)) as $line) {
                    $this->runLine($line);
                }
            }
        }
    }

    private function runLine(string $line): void
    {
        $words = explode(' ', $line);
        if ($words[0] === 'dqctl') {
            $this->runProgram(getenv('DQCTL') ?: 'true', array_slice($words, 1));
        } elseif (in_array('artisan', $words, true)) {
            Job::dispatch($line);
            $this->process(...array_slice($words, array_search('artisan', $words, true) + 1));
            $this->untilWritten("done {$line}");
        } else {
            $this->assertStringStartsWith('composer update', $line, 'needs Composer, which is not here');
        }
    }

    /** @param list<string> $words */
    private function runProgram(string $program, array $words): void
    {
        array_push($words, '--url', "redis://127.0.0.1:{$this->server->port}");
        $process = new Process([$program, ...$words], "{$this->directory}/program", []);
        $this->eventually('it ends', fn (): bool => ! $process->isRunning());
        $this->assertSame(0, $process->exitCode(), $process->output());
    }

    public function testComposerFindsThePackageByItsPath(): void
    {
        [$block] = $this->blocks(self::README, 'json');
        $settings = json_decode($block, true, 16, JSON_THROW_ON_ERROR);
        $package = json_decode((string) file_get_contents(__DIR__ . '/../../composer.json'), true);
        $this->assertArrayHasKey($package['name'], $settings['require']);
        $this->assertSame('path', $settings['repositories'][0]['type']);
    }

    /** @return list<string> the code blocks of a language */
    private function blocks(string $page, string $language): array
    {
        preg_match_all("/^```{$language}\n(.*?)^```$/ms", (string) file_get_contents($page), $found);
        return $found[1];
    }

    private function isNew(string $block): bool
    {
        return ! str_contains($block, 'class RemindCustomer') || ! class_exists(RemindCustomer::class, false);
    }

    private function evaluate(string $code): mixed
    {
        $file = "{$this->directory}/block.php";
        file_put_contents($file, "<?php\n{$code}");
        return require $file;
    }
}
