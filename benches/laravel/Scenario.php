<?php

declare(strict_types=1);

namespace Dq\Bench\Laravel;

use App\Jobs\Job;
use Dq\Tests\Laravel\RunsApplication;
use Illuminate\Support\Facades\Queue;

/** A server, an application and workers, as the tests have them, and what is measured with them. */
final class Scenario
{
    use RunsApplication;

    private string $connection = 'dq';

    /** @var array<string, list<int>> how late jobs began, by connection */
    private static array $latenesses = [];

    public static function measure(string $connection, string $method): string
    {
        $scenario = new self();
        $scenario->connection = $connection;
        $scenario->startApplication();
        try {
            return $scenario->$method();
        } finally {
            $scenario->end();
        }
    }

    protected function connection(): string
    {
        return $this->connection;
    }

    protected function queueSettings(): array
    {
        return [];
    }

    public function lateness(): string
    {
        $late = $this->sortedLatenesses();
        return sprintf('%d ms, %d ms', $late[intdiv(count($late), 2)], end($late));
    }

    public function early(): string
    {
        return (string) count(array_filter($this->sortedLatenesses(), fn (int $late): bool => $late < 0));
    }

    public function runsOfALongJob(): string
    {
        $this->configure(['block_for' => 1, 'lease' => 2, 'retry_after' => 2]);
        Job::dispatch('long', ['sleep 6']);
        $this->work('--sleep=0.5', '--tries=0');
        $this->work('--sleep=0.5', '--tries=0');
        $this->untilWritten('done long');
        usleep(1_000_000);
        $runs = count($this->journal('run'));
        return $runs === 1 ? 'once' : "{$runs} times";
    }

    public function afterAKill(): string
    {
        $this->configure(['block_for' => 5, 'lease' => 10, 'retry_after' => 10]);
        Job::dispatch('victim', ['sleep 60']);
        $worker = $this->work('--tries=0');
        $this->untilWritten('run victim 1');
        $this->work('--tries=0');
        usleep(3_000_000); // The second worker has started.
        $killed = self::milliseconds();
        $worker->signal(SIGKILL);
        $this->untilWritten('run victim 2');
        return self::duration($this->writtenAt('run victim 2') - $killed);
    }

    public function lessImportantQueue(): string
    {
        $this->configure(['block_for' => 5]);
        $this->work('--queue=high,low');
        Job::dispatch('first')->onQueue('high');
        $this->untilWritten('done first');
        $worst = 0;
        for ($number = 1; $number <= 5; $number++) {
            usleep(700_000);
            $pushed = self::milliseconds();
            Job::dispatch("job-{$number}")->onQueue('low');
            $this->untilWritten("done job-{$number}");
            $worst = max($worst, $this->writtenAt("run job-{$number} 1") - $pushed);
        }
        return self::duration($worst);
    }

    public function order(): string
    {
        $due = now()->addSeconds(3)->startOfSecond();
        foreach ([1, 2, 3, 4, 5] as $number) {
            Job::dispatch((string) $number)->delay($due);
        }
        $this->work();
        $this->eventually('all run', fn (): bool => count($this->journal('done')) === 5);
        return implode(' ', array_map(fn (string $line): string => substr($line, 5), $this->journal('done')));
    }

    public function bulk(): string
    {
        Queue::size(); // The connection is open.
        $jobs = array_map(fn (int $number): Job => new Job("job-{$number}"), range(1, 1000));
        $begun = microtime(true);
        Queue::bulk($jobs);
        return sprintf('%d ms', (microtime(true) - $begun) * 1000);
    }

    public function throughput(): string
    {
        return sprintf('%d ms', $this->millisecondsForEmptyJobs(1000));
    }

    /** Jobs a second. */
    public function rate(): string
    {
        return (string) (5000 * 1000 / $this->millisecondsForEmptyJobs(5000));
    }

    private function millisecondsForEmptyJobs(int $count): int
    {
        Queue::bulk(array_map(fn (int $number): Job => new Job("job-{$number}"), range(1, $count)));
        $this->work();
        $this->eventually('all run', fn (): bool => count($this->journal('done')) === $count);
        return $this->writtenAt("done job-{$count}") - $this->writtenAt('run job-1 1');
    }

    /** @return list<int> how late each of twenty jobs began, in ms, ascending; measured once */
    private function sortedLatenesses(): array
    {
        return self::$latenesses[$this->connection] ??= $this->measureLatenesses();
    }

    /** @return list<int> */
    private function measureLatenesses(): array
    {
        $this->work();
        Job::dispatch('first');
        $this->untilWritten('done first');
        $late = [];
        for ($number = 0; $number < 20; $number++) {
            $due = now()->addMilliseconds(1000 + 100 * $number);
            Job::dispatch("job-{$number}")->delay($due);
            $this->untilWritten("done job-{$number}");
            $late[] = $this->writtenAt("run job-{$number} 1") - (int) $due->format('Uv');
        }
        sort($late);
        return $late;
    }

    /** @param array<string, mixed> $settings of both connections */
    private function configure(array $settings): void
    {
        putenv('DQ_REDIS_QUEUE=' . json_encode($settings));
        $this->restartWith(array_diff_key($settings, ['retry_after' => 0]));
    }

    private function end(): void
    {
        putenv('DQ_REDIS_QUEUE');
        $this->stopApplication(false);
    }

    private static function duration(int $milliseconds): string
    {
        return $milliseconds < 1000 ? "{$milliseconds} ms" : sprintf('%.1f s', $milliseconds / 1000);
    }
}
