<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use Dq\Laravel\DqConnector;
use Illuminate\Queue\MaxAttemptsExceededException;
use Illuminate\Support\Facades\Queue;

/** What becomes of jobs whose worker, or its keeper of leases, dies. */
final class LeaseTest extends TestCase
{
    protected function queueSettings(): array
    {
        return ['block_for' => 1, 'lease' => 30];
    }

    public function testTheJobOfAKilledWorkerIsGivenBackAtOnce(): void
    {
        $id = Queue::push(new Job('a', ['sleep 60']));
        $worker = $this->work();
        $this->untilWritten('run a 1');
        $deadline = $this->message($id)['deadline'];
        $worker->signal(SIGKILL);
        $this->eventually('the job is given back', fn (): bool => $this->message($id)['state'] !== 'inflight');
        $this->assertLessThan($deadline, self::milliseconds(), 'long before its lease ends');
        $this->assertSame('the worker died', $this->message($id)['error']);
        $this->assertSame(1, (int) $this->message($id)['attempt']);
        $this->assertNoKeeperOf($worker);
    }

    public function testAKilledKeeperIsReplacedWhileTheJobRuns(): void
    {
        $this->restartWith(['block_for' => 1, 'lease' => 4]);
        $id = Queue::push(new Job('a', ['sleep 7']));
        $worker = $this->work();
        $this->untilWritten('run a 1');
        $this->work();
        $keeper = $this->untilKept($worker);
        posix_kill($keeper, SIGKILL);
        $this->eventually(
            'another keeper',
            fn (): bool => ! in_array(Keepers::of($worker->pid), [null, $keeper], true)
        );
        $this->assertSame('inflight', $this->message($id)['state']);
        $this->untilWritten('done a');
        $this->assertSame(['run a 1'], $this->journal('run'));
        $this->assertSame([], $this->journal('lost'));
    }

    public function testWithoutWorkerAndKeeperTheJobComesBackAfterItsLease(): void
    {
        $this->restartWith(['block_for' => 1, 'lease' => 2]);
        $id = Queue::push(new Job('a', ['sleep 60']));
        $worker = $this->work();
        $this->untilWritten('run a 1');
        $keeper = $this->untilKept($worker);
        posix_kill($worker->pid, SIGSTOP);
        posix_kill($keeper, SIGKILL);
        $worker->signal(SIGKILL);
        $this->eventually('the lease ends', fn (): bool => $this->message($id)['state'] === 'ready');
        $this->assertArrayNotHasKey('error', $this->message($id));
    }

    public function testNoKeeperIsLeftAfterItsWorker(): void
    {
        foreach ([SIGTERM, SIGKILL] as $signal) {
            $name = "job-{$signal}";
            Job::dispatch($name);
            $worker = $this->work();
            $this->untilWritten("done {$name}");
            $this->untilKept($worker);
            $worker->signal($signal);
            $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
            $this->assertNoKeeperOf($worker);
        }
    }

    public function testTheKeeperIsThereBeforeTheConnectionOfPopsWhichItWouldInherit(): void
    {
        $this->untilKept($this->work());
        $this->assertSame([], $this->journal('run'));
    }

    public function testWorkersWithTheSameHostAndProcessHaveNamesOfTheirOwn(): void
    {
        $names = [];
        foreach (['a', 'b'] as $job) {
            $id = Queue::push(new Job($job));
            $queue = (new DqConnector($this->app))->connect($this->app['config']['queue.connections.dq']);
            $queue->setContainer($this->app);
            $held = $queue->pop();
            $names[] = $this->message($id)['consumer'];
            $held->delete();
        }
        $this->assertNotSame($names[0], $names[1]);
        $this->assertSame(substr($names[0], 0, -8), substr($names[1], 0, -8));
    }

    public function testAnIdleWorkerStopsAndHoldsNothing(): void
    {
        Job::dispatch('a');
        $worker = $this->work();
        $this->untilWritten('done a');
        $worker->signal(SIGTERM);
        $this->eventually('the worker ends', fn (): bool => $worker->exitCode() === 0);
        Job::dispatch('b');
        $this->assertSame(0, (int) $this->server->ask('DQ.LEN', 'default', 'inflight'));
        $this->assertSame(1, Queue::connection()->pendingSize());
    }

    public function testWithoutAKeeperTheLeaseIsLongerThanTheTimeout(): void
    {
        $this->restartWith(['block_for' => 1, 'lease' => 5, 'keep' => 'none']);
        $id = Queue::push(Job::make('a', ['sleep 60'], ['timeout' => 100]));
        $worker = $this->work();
        $this->untilWritten('run a 1');
        $left = $this->message($id)['deadline'] - self::milliseconds();
        $this->assertGreaterThan(45_000, $left);
        $this->assertLessThanOrEqual(110_000, $left);
        $this->assertNull(Keepers::of($worker->pid));
    }

    public function testAJobIsGivenBackUncountedIfNoKeeperCanBeStarted(): void
    {
        $id = Queue::push(new Job('a'));
        $this->php('-d', 'disable_functions=proc_open', __DIR__ . '/app/artisan', 'queue:work', '--once');
        $this->eventually('the log has it', fn (): bool => str_contains($this->log(), "'keep' of the dq connection"));
        $this->assertSame(['ready', 0], [$this->message($id)['state'], (int) $this->message($id)['attempt']]);
    }

    public function testAJobThatKillsItsWorkersIsAFailedJobAfterItsTries(): void
    {
        dispatch(Job::make('a', ['kill'], ['tries' => 2]));
        foreach ([1, 2] as $attempt) {
            $worker = $this->work();
            $this->untilWritten("run a {$attempt}");
            $this->eventually('the worker dies', fn (): bool => ! $worker->isRunning());
        }
        $this->untilNothingRuns();
        $this->work();
        $this->untilWritten('failed a ' . MaxAttemptsExceededException::class);
        $this->assertSame(['run a 1', 'run a 2'], $this->journal('run'));
        $this->untilOneFailedJob();
    }

    public function testALostJobIsAnEvent(): void
    {
        $id = Queue::push(new Job('a', ['lost', 'sleep 5', 'lost']));
        $this->work();
        $this->untilWritten('run a 1');
        $this->untilWritten('held a');
        Queue::connection()->cancel($id);
        $this->untilWritten('lost() a');
        $this->untilWritten("lost {$id}");
        $this->assertStringContainsString('was lost while it ran', $this->log());
    }

    public function testATimeoutIsAnAttempt(): void
    {
        dispatch(Job::make('a', ['sleep 60'], ['timeout' => 1, 'tries' => 2])->withId('a'));
        $this->work();
        $this->untilWritten('run a 1');
        $this->untilNothingRuns();
        $this->assertContains($this->message('a')['error'], [Job::class . ' has timed out', 'the worker died']);
        $this->work();
        $this->untilWritten('run a 2');
        $this->eventually('it is a failed job', fn (): bool => $this->journal('job-failed') !== []);
    }

    private function untilNothingRuns(): void
    {
        $this->eventually('nothing runs', fn (): bool => Queue::connection()->reservedSize() === 0);
    }

    private function untilKept(Process $worker): int
    {
        $this->eventually('a keeper', fn (): bool => Keepers::of($worker->pid) !== null);
        return Keepers::of($worker->pid);
    }

    private function assertNoKeeperOf(Process $worker): void
    {
        $this->eventually('the keeper ends', fn (): bool => Keepers::of($worker->pid) === null);
    }
}
