<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Closures;
use App\Jobs\DeadlineJob;
use App\Jobs\EncryptedJob;
use App\Jobs\Job;
use App\Jobs\MiddlewareJob;
use App\Jobs\UniqueJob;
use App\Jobs\UniqueUntilProcessingJob;
use App\OrderShipped;
use App\ShippedMail;
use App\ShippedNotification;
use Illuminate\Queue\MaxAttemptsExceededException;
use Illuminate\Support\Facades\Bus;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\Facades\Mail;
use Illuminate\Support\Facades\Notification;
use Illuminate\Support\Facades\Queue;

/** What jobs of Laravel can do. The same tests pass with the connection `redis` of Laravel: SHARED_CONNECTION=redis. */
final class SharedTest extends TestCase
{
    protected function connection(): string
    {
        return getenv('SHARED_CONNECTION') ?: 'dq';
    }

    public function testAJobRunsOnce(): void
    {
        Job::dispatch('a');
        $this->workUntilEmpty();
        $this->assertSame(['run a 1', 'done a'], $this->journal());
        $this->assertSame(0, Queue::size());
    }

    public function testADelayedJobIsNeverEarly(): void
    {
        $due = self::milliseconds() + 1000;
        Job::dispatch('a')->delay(now()->addSeconds(2));
        Job::dispatch('b')->delay(2);
        $this->work('--sleep=0.1');
        $this->untilWritten('done a');
        $this->untilWritten('done b');
        // The driver redis counts in whole seconds.
        $this->assertGreaterThanOrEqual($due, $this->writtenAt('run a 1'));
        $this->assertGreaterThanOrEqual($due, $this->writtenAt('run b 1'));
    }

    public function testAFailingJobIsTriedAgain(): void
    {
        Job::dispatch('a', ['throw-until 3']);
        $this->work('--tries=3', '--sleep=0.1');
        $this->untilWritten('done a');
        $this->assertSame(['run a 1', 'run a 2', 'run a 3', 'done a'], $this->journal());
    }

    public function testAJobIsFailedAfterItsTries(): void
    {
        dispatch(Job::make('a', ['throw'], ['tries' => 2]));
        $this->work('--sleep=0.1', '--tries=9');
        $this->untilOneFailedJob();
        $this->eventually('the queue is empty', fn (): bool => Queue::size() === 0);
        $this->assertSame(
            ['run a 1', 'run a 2', 'failed a RuntimeException', 'job-failed RuntimeException'],
            $this->journal()
        );
        $this->assertStringContainsString(Job::class, $this->artisan('queue:failed'));
    }

    public function testAnArrayOfBackoffsIsTheTimesBetweenAttempts(): void
    {
        dispatch(Job::make('a', ['throw-until 3'], ['backoff' => [1, 2]]));
        $this->work('--tries=3', '--sleep=0.1');
        $this->untilWritten('done a');
        $this->assertGreaterThan(0, $this->writtenAt('run a 2') - $this->writtenAt('run a 1'));
        $this->assertGreaterThanOrEqual(1000, $this->writtenAt('run a 3') - $this->writtenAt('run a 2'));
    }

    public function testARetriedFailedJobBeginsAnew(): void
    {
        Job::dispatch('a', ['throw']);
        $this->workUntilEmpty();
        $this->artisan('queue:retry', ['id' => ['all']]);
        $this->assertStringNotContainsString(Job::class, $this->artisan('queue:failed'));
        $this->workUntilEmpty();
        $this->assertSame(['run a 1', 'run a 1'], $this->journal('run'));
        $this->assertStringContainsString(Job::class, $this->artisan('queue:failed'));
    }

    public function testAJobIsTriedUntilItsDeadline(): void
    {
        dispatch(DeadlineJob::make('a', ['throw-until 3'], ['seconds' => 3600]));
        $this->work('--sleep=0.1', '--tries=1');
        $this->untilWritten('done a');
        dispatch(DeadlineJob::make('b', ['throw'], ['seconds' => -10]));
        $this->untilWritten('failed b ' . MaxAttemptsExceededException::class);
        $this->assertSame(['run a 1', 'run a 2', 'run a 3'], $this->journal('run'));
    }

    public function testMaxExceptionsEndTheTries(): void
    {
        dispatch(Job::make('a', ['release-until 3', 'throw'], ['tries' => 20, 'maxExceptions' => 2]));
        $this->work('--sleep=0.1');
        $this->untilWritten('job-failed RuntimeException');
        $this->assertLessThan(20, count($this->journal('run')));
    }

    public function testAReleasedJobComesBack(): void
    {
        Job::dispatch('a', ['release-until 2']);
        $this->work('--sleep=0.1', '--tries=3');
        $this->untilWritten('done a');
        $this->assertSame(['run a 1', 'run a 2', 'done a'], $this->journal());
    }

    public function testAJobThatFailsItselfIsNotTriedAgain(): void
    {
        Job::dispatch('a', ['fail']);
        $this->workUntilEmpty('--tries=5');
        $this->assertSame(['run a 1'], $this->journal('run'));
        $this->assertCount(1, $this->journal('job-failed'));
        $this->assertStringContainsString(Job::class, $this->artisan('queue:failed'));
    }

    public function testATimeoutEndsTheWorker(): void
    {
        dispatch(Job::make('a', ['sleep 60'], ['timeout' => 1, 'tries' => 1, 'failOnTimeout' => true]));
        $worker = $this->work('--sleep=0.1');
        $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
        $this->untilWritten('run a 1');
        $this->assertCount(1, $this->journal('failed'));
        $this->assertStringContainsString(Job::class, $this->artisan('queue:failed'));
        $this->assertSame(0, Queue::size());
    }

    public function testWithoutOverlappingHoldsAJobBack(): void
    {
        $lock = $this->app['cache']->lock('laravel-queue-overlap:' . MiddlewareJob::class . ':key', 3600);
        $lock->get();
        dispatch(MiddlewareJob::make('a', [], ['middlewareName' => 'without-overlapping', 'tries' => 99]));
        $this->workUntilEmpty();
        $this->assertSame([], $this->journal());
        $lock->release();
        $this->work('--sleep=0.1');
        $this->untilWritten('done a');
        $this->assertNotSame(['run a 1'], $this->journal('run'));
    }

    public function testWithoutOverlappingCanDropAJob(): void
    {
        $this->app['cache']->lock('laravel-queue-overlap:' . MiddlewareJob::class . ':key', 60)->get();
        dispatch(MiddlewareJob::make('a', [], ['middlewareName' => 'without-overlapping-once']));
        $this->workUntilEmpty();
        $this->assertSame([], $this->journal());
        $this->assertSame(0, Queue::size());
    }

    public function testARateLimitHoldsJobsBack(): void
    {
        dispatch(MiddlewareJob::make('a', [], ['middlewareName' => 'rate-limited', 'tries' => 9]));
        dispatch(MiddlewareJob::make('b', [], ['middlewareName' => 'rate-limited', 'tries' => 9]));
        $this->workUntilEmpty();
        $this->assertSame(['done a'], $this->journal('done'));
        $this->assertSame(1, Queue::size());
    }

    public function testExceptionsAreThrottled(): void
    {
        dispatch(MiddlewareJob::make('a', ['throw'], ['middlewareName' => 'throttles-exceptions', 'tries' => 9]));
        $this->workUntilEmpty();
        $this->assertSame(1, Queue::size());
        $this->assertCount(1, $this->journal('run'));
    }

    public function testMiddlewareOfOnesOwnRuns(): void
    {
        dispatch(MiddlewareJob::make('a', [], ['middlewareName' => 'own']));
        $this->workUntilEmpty();
        $this->assertSame(['before a', 'run a 1', 'done a', 'after a'], $this->journal());
    }

    public function testAUniqueJobIsPushedOnceUntilItIsDone(): void
    {
        UniqueJob::dispatch('a');
        UniqueJob::dispatch('a');
        $this->assertSame(1, Queue::size());
        $this->workUntilEmpty();
        UniqueJob::dispatch('a');
        $this->workUntilEmpty();
        $this->assertSame(['run a 1', 'run a 1'], $this->journal('run'));
    }

    public function testAUniqueJobCanBePushedWhenItRuns(): void
    {
        UniqueUntilProcessingJob::dispatch('a', ['sleep 60']);
        UniqueUntilProcessingJob::dispatch('a');
        $this->assertSame(1, Queue::size());
        $this->work('--sleep=0.1');
        $this->untilWritten('run a 1');
        UniqueUntilProcessingJob::dispatch('a');
        $this->assertSame(2, Queue::size());
    }

    public function testAChainRunsInItsOrder(): void
    {
        Bus::chain([new Job('a'), new Job('b'), new Job('c')])->dispatch();
        $this->workUntilEmpty();
        $this->assertSame(['done a', 'done b', 'done c'], $this->journal('done'));
    }

    public function testAChainEndsAtTheFirstFailure(): void
    {
        Bus::chain([new Job('a'), new Job('b', ['throw']), new Job('c')])
            ->catch(Closures::write('chain broke'))
            ->dispatch();
        $this->workUntilEmpty();
        $this->assertSame(['done a'], $this->journal('done'));
        $this->assertSame(['chain broke'], $this->journal('chain'));
    }

    public function testABatchEndsWhenItsJobsHave(): void
    {
        $batch = Bus::batch([new Job('a'), new Job('b'), new Job('c')])
            ->then(Closures::writeSize())
            ->dispatch();
        $this->workUntilEmpty();
        $this->assertSame(['batch 3'], $this->journal('batch'));
        $this->assertTrue(Bus::findBatch($batch->id)->finished());
    }

    public function testABatchIsCancelledByAFailure(): void
    {
        $batch = Bus::batch([new Job('a', ['throw']), new Job('b')])
            ->catch(Closures::write('batch broke'))
            ->dispatch();
        $this->workUntilEmpty();
        $this->assertSame(['batch broke'], $this->journal('batch'));
        $this->assertTrue(Bus::findBatch($batch->id)->cancelled());
        $this->assertSame(1, Bus::findBatch($batch->id)->failedJobs);
    }

    public function testAClosureIsAJob(): void
    {
        dispatch(Closures::write('run closure'));
        $this->workUntilEmpty();
        $this->assertSame(['run closure'], $this->journal());
    }

    public function testAnEncryptedJobRuns(): void
    {
        EncryptedJob::dispatch('secret');
        $this->workUntilEmpty();
        $this->assertSame(['done secret'], $this->journal('done'));
    }

    public function testAMailableIsQueued(): void
    {
        Mail::to('customer@example.org')->queue(new ShippedMail('1001'));
        $this->workUntilEmpty();
        $this->assertStringContainsString('Your order 1001 is on its way.', $this->log());
    }

    public function testANotificationIsQueued(): void
    {
        Notification::route('journal', 'customer')->notify(new ShippedNotification('1001'));
        $this->workUntilEmpty();
        $this->assertSame(['notification 1001'], $this->journal());
    }

    public function testAListenerIsQueued(): void
    {
        Event::dispatch(new OrderShipped('1001'));
        $this->assertSame([], $this->journal());
        $this->workUntilEmpty();
        $this->assertSame(['listener 1001'], $this->journal());
    }

    public function testBulkPushesAllJobs(): void
    {
        Queue::bulk([new Job('a'), new Job('b'), new Job('c')]);
        $this->assertSame(3, Queue::size());
        $this->workUntilEmpty();
        $this->assertSame(['done a', 'done b', 'done c'], $this->journal('done'));
    }

    public function testAJobThatWasPushedInATransactionWaitsForTheCommit(): void
    {
        $this->app['db']->transaction(function (): void {
            Job::dispatch('a')->afterCommit();
            $this->assertSame(0, Queue::size());
        });
        $this->assertSame(1, Queue::size());
    }

    public function testARollbackDropsTheJobsOfATransaction(): void
    {
        $this->app['db']->beginTransaction();
        Job::dispatch('a')->afterCommit();
        Queue::bulk([Job::make('b', [], ['afterCommit' => true])]);
        $this->app['db']->rollBack();
        $this->assertSame(0, Queue::size());
    }

    public function testTheMostImportantQueueComesFirst(): void
    {
        Job::dispatch('low')->onQueue('low');
        Job::dispatch('high')->onQueue('high');
        $this->workUntilEmpty('--queue=high,low');
        $this->assertSame(['done high', 'done low'], $this->journal('done'));
    }

    public function testOnceRunsOneJob(): void
    {
        Job::dispatch('a');
        Job::dispatch('b');
        $worker = $this->work('--once');
        $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
        $this->assertSame(['done a'], $this->journal('done'));
        $this->assertSame(1, Queue::size());
    }

    public function testMaxJobsEndTheWorker(): void
    {
        foreach (['a', 'b', 'c'] as $name) {
            Job::dispatch($name);
        }
        $worker = $this->work('--max-jobs=2');
        $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
        $this->assertSame(['done a', 'done b'], $this->journal('done'));
    }

    public function testMaxTimeEndsTheWorker(): void
    {
        $worker = $this->work('--max-time=1');
        $this->eventually('the worker ends', fn (): bool => $worker->exitCode() === 0);
    }

    public function testARestartEndsTheWorker(): void
    {
        $worker = $this->work('--sleep=0.1');
        Job::dispatch('a');
        $this->untilWritten('done a');
        $this->artisan('queue:restart');
        $this->eventually('the worker ends', fn (): bool => $worker->exitCode() === 0);
    }

    public function testClearRemovesTheJobs(): void
    {
        Job::dispatch('a');
        Job::dispatch('b')->delay(60);
        $this->artisan('queue:clear', ['--force' => true]);
        $this->assertSame(0, Queue::size());
    }

    public function testMonitorShowsTheSize(): void
    {
        Job::dispatch('a');
        Job::dispatch('b')->delay(60);
        $output = $this->artisan('queue:monitor', ['queues' => 'default', '--max' => 1]);
        $this->assertMatchesRegularExpression('/\b2\b/', $output);
        $this->assertStringContainsString('ALERT', $output);
    }

    public function testListenRunsJobs(): void
    {
        Job::dispatch('a');
        symlink(__DIR__ . '/app/artisan', "{$this->directory}/artisan");
        $this->process('queue:listen', '--sleep=0');
        $this->untilWritten('done a');
        Job::dispatch('b');
        $this->untilWritten('done b');
    }

    public function testSigtermLetsTheJobEnd(): void
    {
        Job::dispatch('a', ['sleep 3']);
        Job::dispatch('b');
        $worker = $this->work('--sleep=0.1');
        $this->untilWritten('run a 1');
        $worker->signal(SIGTERM);
        $this->eventually('the worker ends', fn (): bool => $worker->exitCode() === 0);
        $this->assertSame(['run a 1', 'done a'], $this->journal());
        $this->assertSame(1, Queue::size());
    }

    public function testAWorkerCanBePaused(): void
    {
        $worker = $this->work('--sleep=0.1');
        Job::dispatch('a');
        $this->untilWritten('done a');
        Job::dispatch('b', ['sleep 3']);
        $this->untilWritten('run b 1');
        $worker->signal(SIGUSR2);
        Job::dispatch('c');
        $this->untilWritten('done b');
        usleep(300_000);
        $this->assertSame(['done a', 'done b'], $this->journal('done'));
        $worker->signal(SIGCONT);
        $this->untilWritten('done c');
    }

    public function testAnUnknownClassIsAFailedJobAtLast(): void
    {
        Job::dispatch('a');
        $job = Queue::pop();
        $payload = str_replace('App\\\\Jobs\\\\Job', 'App\\\\Jobs\\\\Gon', $job->getRawBody());
        $job->delete();
        Queue::pushRaw($payload);
        $this->workUntilEmpty('--tries=2');
        $this->assertStringContainsString('Gon', $this->log());
        $this->assertStringContainsString('Gon', $this->artisan('queue:failed'));
    }

    public function testAJobThatHasUsedUpItsTriesIsNotRun(): void
    {
        dispatch(Job::make('a', ['release 0'], ['tries' => 2]));
        $this->work('--sleep=0.1');
        $this->untilWritten('job-failed ' . MaxAttemptsExceededException::class);
        $this->assertSame(['run a 1', 'run a 2'], $this->journal('run'));
    }
}
