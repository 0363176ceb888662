<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use Dq\Laravel\DqQueue;
use Dq\Laravel\DueTime;
use Illuminate\Queue\Jobs\InspectedJob;
use Illuminate\Support\Carbon;
use Illuminate\Support\Facades\Queue;

/** What the queue of dq promises beyond the driver redis. */
final class QueueTest extends TestCase
{
    /** With a pop that waits longer than a test, whatever begins has not waited for its end. */
    protected function queueSettings(): array
    {
        return ['block_for' => 300];
    }

    public function testTheProviderIsDiscoveredAndKnowsTheConnection(): void
    {
        putenv('DQ_WITHOUT_CONNECTION=1');
        try {
            $this->boot();
            $this->assertInstanceOf(DqQueue::class, Queue::connection());
            Job::dispatch('a');
            $this->work('--once');
            $this->untilWritten('done a');
        } finally {
            putenv('DQ_WITHOUT_CONNECTION');
        }
    }

    public function testADelayedJobBeginsWithoutAPollAndNeverEarly(): void
    {
        $this->work();
        $before = self::milliseconds();
        Job::dispatch('a')->delay(now()->addMilliseconds(700));
        $this->untilWritten('run a 1');
        $this->assertGreaterThanOrEqual($before + 699, $this->writtenAt('run a 1'));
        $before = self::milliseconds();
        Queue::later(0.3, new Job('b'));
        $this->untilWritten('run b 1');
        $this->assertGreaterThanOrEqual($before + 300, $this->writtenAt('run b 1'));
    }

    public function testATimeIsADueTimeToTheMillisecond(): void
    {
        $due = now()->addSeconds(90)->startOfSecond()->addMilliseconds(123);
        $id = Queue::later($due, new Job('a'));
        $this->assertSame((int) $due->format('Uv'), (int) $this->message($id)['due']);
    }

    public function testAPartOfAMillisecondMakesNoJobEarly(): void
    {
        $due = now()->addSeconds(90)->startOfSecond()->addMicroseconds(123_001);
        $id = Queue::later($due, new Job('a'));
        $this->assertSame((int) $due->format('U') * 1000 + 124, (int) $this->message($id)['due']);
        $now = now()->startOfSecond();
        Carbon::setTestNow($now);
        $this->assertSame(1, DueTime::millisecondsFromNow($now->copy()->addMicroseconds(1)));
        Carbon::setTestNow();
    }

    public function testAWorkerDoesNotSleepBetweenPops(): void
    {
        $this->restartWith(['block_for' => 0.05]);
        $this->work();
        // With Laravel's default of three seconds these would take a minute and a half.
        $this->eventually('thirty pops', fn (): bool => $this->calls('pop') >= 30);
    }

    public function testAnIntervalIsADelay(): void
    {
        Queue::later(new \DateInterval('PT90S'), new Job('a'));
        [$first] = $this->peek('default', 'delayed');
        $this->assertEqualsWithDelta(90_000, $first['due'] - $first['created'], 60_000);
        $this->assertGreaterThan(30_000, $first['due'] - $first['created']);
    }

    public function testJobsOfTheSameTimeRunInTheOrderOfTheirPushes(): void
    {
        $due = now()->addSeconds(1);
        foreach ([1, 2, 3, 4, 5] as $number) {
            Job::dispatch("job-{$number}")->delay($due);
        }
        $this->work();
        $this->untilWritten('done job-5');
        $this->assertSame(
            ['done job-1', 'done job-2', 'done job-3', 'done job-4', 'done job-5'],
            $this->journal('done')
        );
    }

    public function testALessImportantQueueDoesNotWaitForAMoreImportantOne(): void
    {
        $this->work('--queue=high,middle,low');
        $this->eventually('the worker waits', fn (): bool => $this->blockedClients() === 1);
        Job::dispatch('a')->onQueue('low');
        $this->untilWritten('done a');
        Job::dispatch('b')->onQueue('high');
        $this->untilWritten('done b');
    }

    public function testTheMostImportantQueueIsFirstIfAllHaveAJob(): void
    {
        Job::dispatch('low')->onQueue('low');
        Job::dispatch('high')->onQueue('high');
        $this->work('--queue=high,low');
        $this->untilWritten('done low');
        $this->assertSame(['done high', 'done low'], $this->journal('done'));
    }

    public function testAWorkerPopsAlthoughAnotherListenerKeepsTheEventOfItsRounds(): void
    {
        $this->restartWith(['block_for' => 0]);
        $queue = Queue::connection();
        $queue->beginRound(['high', 'low']);
        foreach (['high', 'low', 'high', 'low'] as $name) {
            $this->assertNull($queue->pop($name));
        }
        $this->assertSame(2, $this->calls('mpop'));
    }

    public function testOnceLooksAtAllQueues(): void
    {
        Job::dispatch('low')->onQueue('low');
        $worker = $this->work('--once', '--queue=high,low');
        $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
        $this->assertSame(['done low'], $this->journal('done'));
    }

    public function testAnEmptyQueueEndsTheWorkerAtOnceIfItIsToldSo(): void
    {
        $worker = $this->work('--stop-when-empty');
        $this->eventually('the worker ends', fn (): bool => $worker->exitCode() === 0);
    }

    public function testAPausedQueueIsNotWorkedOn(): void
    {
        if (! method_exists($this->app['queue'], 'pause')) {
            $this->markTestSkipped('this version of Laravel does not pause queues');
        }
        Queue::pause('dq', 'high');
        Job::dispatch('high')->onQueue('high');
        Job::dispatch('low')->onQueue('low');
        $worker = $this->work('--stop-when-empty', '--queue=high,low');
        $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
        $this->assertSame(['done low'], $this->journal('done'));
        $this->assertSame(1, Queue::size('high'));
    }

    public function testSizesAreThoseOfTheStates(): void
    {
        Job::dispatch('a');
        Job::dispatch('b');
        Job::dispatch('c')->delay(60);
        $this->server->ask('DQ.POP', 'default');
        $queue = Queue::connection();
        $this->assertSame([3, 1, 1, 1], [
            $queue->size(), $queue->pendingSize(), $queue->delayedSize(), $queue->reservedSize(),
        ]);
        $this->assertEqualsWithDelta(time(), $queue->creationTimeOfOldestPendingJob(), 120);
    }

    public function testTheJobsOfAQueueCanBeLookedAt(): void
    {
        if (! class_exists(InspectedJob::class)) {
            $this->markTestSkipped('this version of Laravel does not look at jobs');
        }
        $reserved = Queue::push(new Job('a'));
        $this->server->ask('DQ.POP', 'default');
        $pending = Queue::push(new Job('b'));
        $delayed = Queue::later(60, new Job('c'));
        $this->server->ask('DQ.PUSH', 'default', 'no json');
        $queue = Queue::connection();
        $this->assertSame([$pending, null], $queue->pendingJobs()->pluck('uuid')->all());
        $this->assertSame([$delayed], $queue->delayedJobs()->pluck('uuid')->all());
        [$job] = $queue->reservedJobs()->all();
        $this->assertSame([$reserved, Job::class, 1, 'default'], [$job->uuid, $job->name, $job->attempts, $job->queue]);
    }

    public function testAJobThatIsReleasedAndThenBreaksIsNotLost(): void
    {
        dispatch(Job::make('a', ['release 600', 'release 0', 'throw'], ['tries' => 1]));
        $this->workUntilEmpty();
        $this->assertSame([], $this->journal('lost'));
        $this->assertSame(1, Queue::connection()->delayedSize());
    }

    public function testALongJobRunsOnceWhileOthersWait(): void
    {
        $this->restartWith(['lease' => 2, 'block_for' => 1]);
        Job::dispatch('a', ['sleep 6']);
        for ($worker = 0; $worker < 3; $worker++) {
            $this->work();
        }
        $this->untilWritten('done a');
        $this->assertSame(['run a 1'], $this->journal('run'));
        $this->assertSame([], $this->journal('lost'));
    }

    private function blockedClients(): int
    {
        return (int) $this->server->redis()->info('clients')['blocked_clients'];
    }
}
