<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use Dq\Laravel\IdTaken;
use Illuminate\Support\Facades\Bus;
use Illuminate\Support\Facades\Queue;

/** Failed jobs of the driver dq: dead messages, without SQL. */
final class FailedJobsTest extends TestCase
{
    protected function queueSettings(): array
    {
        return ['block_for' => 1];
    }

    private bool $inTable = false;

    protected function failedSettings(): ?array
    {
        return $this->inTable ? null : ['driver' => 'dq', 'queues' => ['default', 'mail']];
    }

    public function testAFailedJobIsADeadMessage(): void
    {
        $id = Queue::push(new Job('a', ['throw']));
        $this->workUntilEmpty();
        $this->assertSame('dead', $this->message($id)['state']);
        $this->assertStringStartsWith('RuntimeException: a broke', $this->message($id)['error']);
        $this->assertStringContainsString($id, $this->artisan('queue:failed'));
        $this->assertSame(['run a 1', 'failed a RuntimeException', 'job-failed RuntimeException'], $this->journal());
        date_default_timezone_set('Asia/Tokyo');
        [$record] = $this->failer()->all();
        $this->assertEqualsWithDelta(time(), strtotime($record->failed_at), 600, 'in the time zone of the application');
        date_default_timezone_set('UTC');
        $this->assertSame(['dq', 'default', $id], [$record->connection, $record->queue, $record->id]);
        $this->assertStringContainsString('a broke', $record->exception);
    }

    public function testARetriedJobBeginsAnewWithItsOptions(): void
    {
        $id = Queue::push((new Job('a', ['throw']))->withPriority(4)->withId('order-7')->onGroup('g'));
        $this->assertSame('order-7', $id);
        $this->workUntilEmpty();
        $this->artisan('queue:retry', ['id' => ['order-7']]);
        $message = $this->message('order-7');
        $this->assertSame(['ready', 0, 4, 'g'], [
            $message['state'], (int) $message['attempt'], (int) $message['priority'], $message['group'],
        ]);
        $this->assertSame([], $this->failer()->all());
    }

    public function testAllFailedJobsCanBeRetried(): void
    {
        Job::dispatch('a', ['throw']);
        Job::dispatch('b', ['throw'])->onQueue('mail');
        $this->workUntilEmpty('--queue=default,mail');
        $this->assertCount(2, $this->failer()->all());
        $this->artisan('queue:retry', ['id' => ['all']]);
        $this->assertSame([1, 1], [Queue::size(), Queue::size('mail')]);
        $this->assertSame([], $this->failer()->all());
    }

    public function testAFailedJobOfOneQueueCanBeRetried(): void
    {
        Job::dispatch('a', ['throw']);
        Job::dispatch('b', ['throw'])->onQueue('mail');
        $this->workUntilEmpty('--queue=default,mail');
        $this->artisan('queue:retry', ['--queue' => 'mail']);
        $this->assertSame([0, 1], [Queue::size(), Queue::size('mail')]);
    }

    public function testAFailedJobCanBeForgotten(): void
    {
        $id = Queue::push(new Job('a', ['throw']));
        $this->workUntilEmpty();
        $this->artisan('queue:forget', ['id' => $id]);
        $this->assertNull($this->message($id));
        $this->assertStringContainsString('No failed job', $this->artisan('queue:forget', ['id' => $id]));
    }

    public function testForgetLeavesAJobThatIsNotFailed(): void
    {
        $id = Queue::push(new Job('a'));
        $this->artisan('queue:forget', ['id' => $id]);
        $this->assertSame('ready', $this->message($id)['state']);
    }

    public function testFlushRemovesFailedJobs(): void
    {
        Job::dispatch('a', ['throw']);
        $this->workUntilEmpty();
        Job::dispatch('b');
        $this->artisan('queue:flush');
        $this->assertSame([], $this->failer()->all());
        $this->assertSame(1, Queue::size());
    }

    public function testClearLeavesFailedJobs(): void
    {
        Job::dispatch('a', ['throw']);
        $this->workUntilEmpty();
        $this->artisan('queue:clear', ['--force' => true]);
        $this->assertPlaces(0, 1);
    }

    public function testOldFailedJobsAreRemovedAlone(): void
    {
        Job::dispatch('a', ['throw']);
        $this->workUntilEmpty();
        $this->failer()->flush(1);
        $this->assertSame(0, $this->failer()->prune(now()->subHours(1)));
        $this->assertCount(1, $this->failer()->all());
        $this->assertSame(1, $this->failer()->prune(now()->addSecond()));
        $this->assertSame([], $this->failer()->all());
        $this->assertStringContainsString('0 entries deleted', $this->artisan('queue:prune-failed'));
    }

    public function testAKillBeforeTheOutcomeLeavesTheJobInTheQueue(): void
    {
        dispatch(Job::make('a', ['kill'], ['tries' => 1]));
        $this->runUntilKilled();
        $this->assertPlaces(1, 0);
    }

    public function testAKillInFailedLeavesAFailedJob(): void
    {
        dispatch(Job::make('a', ['throw'], ['tries' => 1, 'dieInFailed' => true]));
        $this->runUntilKilled();
        $this->assertPlaces(0, 1);
    }

    public function testAKillInAListenerOfTheFailureLeavesAFailedJob(): void
    {
        dispatch(Job::make('die-in-listener', ['throw'], ['tries' => 1]));
        $this->runUntilKilled();
        $this->assertPlaces(0, 1);
    }

    public function testAKillBetweenRetryAndForgetLeavesTheJobInTheQueue(): void
    {
        $id = Queue::push(new Job('a', ['throw']));
        $this->workUntilEmpty();
        Queue::pushRaw($this->failer()->find($id)->payload);
        $this->assertPlaces(1, 0);
    }

    public function testAJobThatFailsAgainBeforeItIsForgottenStaysAFailedJob(): void
    {
        $id = Queue::push(new Job('a', ['throw']));
        $this->workUntilEmpty();
        $record = $this->failer()->find($id);
        Queue::pushRaw($record->payload, $record->queue);
        $this->workUntilEmpty();
        $this->assertTrue($this->failer()->forget($id));
        $this->assertPlaces(0, 1);
    }

    public function testASecondRetryOfAJobThatFailsAgainMeanwhileLosesNothing(): void
    {
        $id = Queue::push(new Job('a', ['throw']));
        $this->workUntilEmpty();
        $record = $this->failer()->find($id);
        $this->artisan('queue:retry', ['id' => [$id]]);
        $this->assertNull(Queue::pushRaw($record->payload, $record->queue), 'the first retry has pushed it');
        $this->workUntilEmpty();
        $this->assertTrue($this->failer()->forget($id));
        $this->assertPlaces(0, 1);
    }

    public function testAJobOfAnotherConnectionIsStored(): void
    {
        $this->app['queue.failer']->log('redis', 'reports', '{"uuid":"u-1","job":"x"}', new \RuntimeException('broke'));
        $record = $this->failer()->find('u-1');
        $this->assertSame(['redis', 'reports'], [$record->connection, $record->queue]);
        $this->assertTrue($this->failer()->forget('u-1'));
    }

    public function testAJobOfASecondConnectionToTheSameQueuesIsStoredOnce(): void
    {
        $this->app['config']->set('queue.connections.also', $this->app['config']['queue.connections.dq']);
        $this->app['queue.failer']->log('also', 'default', '{"uuid":"u-1","job":"x"}', new \RuntimeException('broke'));
        $this->assertSame([], $this->failer()->all());
    }

    public function testATableLosesNoJobThatIsKilledInFailed(): void
    {
        $this->inTable = true;
        $this->boot();
        dispatch(Job::make('a', ['throw'], ['tries' => 1, 'dieInFailed' => true]));
        $this->runUntilKilled();
        $this->assertSame(1, (int) $this->server->ask('DQ.LEN', 'default'));
        $this->assertSame([], $this->failer()->all());
    }

    public function testARetryFromATableIsNotLostAlthoughTheQueueRemembersTheId(): void
    {
        $this->inTable = true;
        $this->boot();
        foreach (['RETAIN', 'DEDUPE'] as $setting) {
            $this->server->ask('DQ.CREATE', strtolower($setting), $setting, '600000');
            Job::dispatch('a', ['throw'])->onQueue(strtolower($setting));
            $this->workUntilEmpty('--queue=' . strtolower($setting));
            $this->assertCount(1, $this->failer()->all());
            $this->artisan('queue:retry', ['id' => ['all']]);
            $this->assertSame([], $this->failer()->all());
            $this->assertSame(1, Queue::size(strtolower($setting)));
        }
    }

    public function testAFailedJobStaysInItsTableWhileAnotherJobHasItsId(): void
    {
        $this->inTable = true;
        $this->boot();
        Queue::push((new Job('a', ['throw']))->withId('order-7'));
        $this->workUntilEmpty();
        Queue::push((new Job('b'))->withId('order-7'));
        try {
            $this->artisan('queue:retry', ['id' => ['all']]);
            $this->fail('the retry says that it was made');
        } catch (IdTaken $error) {
            $this->assertStringContainsString('order-7', $error->getMessage());
        }
        $this->assertPlaces(1, 1);
        $this->assertStringContainsString('s:1:\"b\"', $this->message('order-7')['payload']);
    }

    public function testARetryLeavesAnotherFailedJobThatHasTheId(): void
    {
        Queue::push((new Job('a', ['throw']))->withId('order-7'));
        $this->workUntilEmpty();
        $record = $this->failer()->find('order-7');
        $this->failer()->forget('order-7');
        Queue::push((new Job('b', ['throw']))->withId('order-7'));
        $this->workUntilEmpty();
        try {
            Queue::pushRaw($record->payload);
            $this->fail('the retry says that it was made');
        } catch (IdTaken $error) {
            $this->assertStringContainsString('order-7', $error->getMessage());
        }
        $this->assertPlaces(0, 1);
        $this->assertStringContainsString('s:1:\"b\"', $this->message('order-7')['payload']);
    }

    public function testARetryOfAJobThatIsInTheQueueAlreadyChangesNothing(): void
    {
        $id = Queue::push(new Job('a'));
        $this->assertNull(Queue::pushRaw($this->message($id)['payload']));
        $this->assertSame(1, Queue::size());
    }

    public function testARetryFromATableKeepsTheOptionsOfTheJob(): void
    {
        $this->inTable = true;
        $this->boot();
        Queue::push((new Job('a', ['throw']))->withId('order-7')->withPriority(4)->onGroup('g'));
        $this->workUntilEmpty();
        $this->artisan('queue:retry', ['id' => ['all']]);
        $this->assertSame([4, 'g'], [(int) $this->message('order-7')['priority'], $this->message('order-7')['group']]);
    }

    public function testTheFailedJobsOfABatchAreRetriedAlsoThoseWithAnIdOfTheirOwn(): void
    {
        $jobs = [new Job('a', ['throw']), (new Job('b', ['throw']))->withId('order-7')];
        $batch = Bus::batch($jobs)->allowFailures()->dispatch();
        $this->workUntilEmpty();
        $this->assertPlaces(0, 2);
        $this->artisan('queue:retry-batch', ['id' => $batch->id]);
        $this->assertPlaces(2, 0);
    }

    public function testAFailedJobWithAnIdOfItsOwnIsForgottenByItsUuid(): void
    {
        Queue::push((new Job('a', ['throw']))->withId('order-7'));
        $this->workUntilEmpty();
        $uuid = json_decode($this->message('order-7')['payload'], true)['uuid'];
        $this->assertTrue($this->failer()->forget($uuid));
        $this->assertPlaces(0, 0);
    }

    private function failer(): object
    {
        return $this->app['queue.failer'];
    }

    private function runUntilKilled(): void
    {
        $worker = $this->work();
        $this->eventually('the worker dies', fn (): bool => ! $worker->isRunning());
    }

    private function assertPlaces(int $inQueue, int $failed): void
    {
        $this->assertSame([$inQueue, $failed], [Queue::size(), count($this->failer()->all())]);
    }
}
