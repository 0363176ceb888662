<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use Dq\Laravel\Link;
use Dq\Laravel\ServerUnreachable;
use Illuminate\Support\Facades\Queue;

/** Servers that fail, and messages that nobody can read. */
final class TroubleTest extends TestCase
{
    protected function queueSettings(): array
    {
        return ['block_for' => 1];
    }

    /** @var array<string, mixed>|null */
    private ?array $redis = null;

    protected function redisSettings(): array
    {
        return $this->redis ?? parent::redisSettings();
    }

    public function testAWorkerGoesOnAfterARestartOfTheServer(): void
    {
        $worker = $this->work();
        Job::dispatch('a');
        $this->untilWritten('done a');
        $this->server->down();
        $this->eventually('the log has it', fn (): bool => str_contains($this->log(), 'cannot be reached'));
        $this->server->boot();
        Job::dispatch('b');
        $this->untilWritten('done b');
        $this->assertTrue($worker->isRunning());
    }

    public function testAWorkerGoesOnAfterItsServerWasAReplica(): void
    {
        $other = TestServer::start();
        $worker = $this->work();
        Job::dispatch('a');
        $this->untilWritten('done a');
        $this->server->ask('REPLICAOF', '127.0.0.1', (string) $other->port);
        $this->eventually('the log has it', fn (): bool => (bool) preg_match('/READONLY|UNBLOCKED/', $this->log()));
        $this->server->ask('REPLICAOF', 'NO', 'ONE');
        Job::dispatch('b');
        $this->untilWritten('done b');
        $this->assertTrue($worker->isRunning());
        $other->stop();
    }

    public function testAJobThatRunsThroughARestartRunsOnce(): void
    {
        $this->work();
        Job::dispatch('a', ['sleep 3']);
        $this->untilWritten('run a 1');
        $this->server->down();
        $this->server->boot();
        $this->untilWritten('done a');
        $this->eventually('it is done', fn (): bool => Queue::size() === 0);
        $this->assertSame(['run a 1'], $this->journal('run'));
    }

    public function testAnOutcomeWaitsForTheServer(): void
    {
        $this->work();
        Job::dispatch('a', ['sleep 1']);
        $this->untilWritten('run a 1');
        $this->server->down();
        $this->untilWritten('done a');
        $this->server->boot();
        $this->eventually('it is done', fn (): bool => Queue::size() === 0);
        $this->assertSame(['run a 1'], $this->journal('run'));
    }

    public function testAWorkerGoesOnAfterAScriptThatBlocksTheServer(): void
    {
        $this->server->ask('CONFIG', 'SET', 'busy-reply-threshold', '100');
        $worker = $this->work();
        Job::dispatch('a');
        $this->untilWritten('done a');
        $blocks = new Process(
            [PHP_BINARY, __DIR__ . '/block.php', (string) $this->server->port, '3'],
            "{$this->directory}/block",
            []
        );
        $this->eventually('the script runs', fn (): bool => str_contains($blocks->output(), 'runs'));
        Job::dispatch('b');
        $this->untilWritten('done b');
        $this->assertTrue($worker->isRunning());
    }

    public function testAWorkerGoesOnAfterAJobThatCannotPush(): void
    {
        $this->server->ask('DQ.CREATE', 'full', 'MAXLEN', '1');
        Job::dispatch('x')->onQueue('full');
        dispatch(\App\Closures::push('full'));
        Job::dispatch('b');
        $this->work();
        $this->untilWritten('done b');
        $this->assertStringContainsString('QUEUEFULL', $this->log());
    }

    public function testAPayloadThatIsNoJobIsAFailedJobAfterItsTries(): void
    {
        $this->server->ask('DQ.PUSH', 'default', 'no json', 'ID', 'm-1');
        $this->work('--tries=2', '--backoff=1');
        $this->eventually('it is dead', fn (): bool => $this->message('m-1')['state'] === 'dead');
        $this->assertSame(2, (int) $this->message('m-1')['attempt']);
        $this->assertStringContainsString('The payload of the message [m-1] of the queue [default]', $this->log());
        Job::dispatch('b');
        $this->untilWritten('done b');
    }

    public function testAPayloadThatIsNoJobWaitsForTheBackoff(): void
    {
        $this->server->ask('DQ.PUSH', 'default', '[1,2]', 'ID', 'm-1');
        $this->work('--tries=2', '--backoff=600');
        $this->eventually('it waits', fn (): bool => $this->message('m-1')['state'] === 'delayed');
        $this->assertStringContainsString('is no JSON of a Laravel job', $this->message('m-1')['error']);
    }

    public function testAMissingExtensionIsNotTakenForAServerThatIsAway(): void
    {
        $link = new Link(fn () => new \NoSuchExtension(), '127.0.0.1:6379');
        $this->expectExceptionMessage('NoSuchExtension');
        $link->call('DQ.LEN', 'default');
    }

    public function testAMessageWithRetriesOfItsOwnIsAFailedJobWhenTheyAreSpent(): void
    {
        Job::dispatch('a', ['throw']);
        $payload = $this->peek('default', 'ready')[0]['payload'];
        $this->artisan('queue:clear', ['--force' => true]);
        $this->server->ask('DQ.PUSH', 'default', $payload, 'ID', 'm-1', 'RETRIES', '1');
        $this->work('--tries=9');
        $this->untilOneFailedJob();
        $this->assertSame(['run a 1', 'run a 2'], $this->journal('run'));
        $this->assertCount(1, $this->journal('failed'));
    }

    public function testAJobWhoseDeliveryWasLostDoesNotWaitForItsLease(): void
    {
        [$proxy, $this->redis] = $this->loseOneReplyTo('DQ.POP');
        $this->restartWith(['lease' => 3600, 'block_for' => 1]);
        Job::dispatch('a');
        $this->work();
        $this->untilWritten('done a');
        $this->assertSame(['run a 1'], $this->journal('run'));
        $this->assertStringContainsString('cut', $proxy->output());
    }

    public function testAJobWhoseDeliveryWasLostOutsideOfALoopDoesNotWaitForItsLeaseEither(): void
    {
        [, $this->redis] = $this->loseOneReplyTo('DQ.POP');
        $this->restartWith(['lease' => 3600, 'block_for' => 1]);
        $id = Queue::push(new Job('a'));
        $this->popsInVain($id, 'default');
        $job = Queue::pop();
        $this->assertSame([$id, 1], [$job->getJobId(), $job->attempts()]);
        $job->delete();
    }

    public function testAJobIsNotDeliveredAgainBecauseThatOfALaterPopWasLost(): void
    {
        [, $this->redis] = $this->loseOneReplyTo('DQ.POP', 2);
        $this->restartWith(['lease' => 3600, 'block_for' => 1]);
        [$first, $second] = [Queue::push(new Job('a')), Queue::push(new Job('b'))];
        $held = Queue::pop();
        $this->assertSame($first, $held->getJobId());
        $this->popsInVain($second, 'default');
        $job = Queue::pop();
        $this->assertSame([$second, 1], [$job->getJobId(), $job->attempts()]);
        $this->assertFalse($held->lost());
        $job->delete();
        $held->delete();
    }

    public function testAJobWhoseDeliveryWasLostIsGivenBackByThePopOfAnotherQueue(): void
    {
        [, $this->redis] = $this->loseOneReplyTo('DQ.POP');
        $this->restartWith(['lease' => 3600, 'block_for' => 1]);
        $id = Queue::push(new Job('a'), '', 'mail');
        $this->popsInVain($id, 'mail');
        $this->assertNull(Queue::pop('default'));
        $this->assertSame('ready', $this->message($id, 'mail')['state']);
        $job = Queue::pop('mail');
        $this->assertSame([$id, 1], [$job->getJobId(), $job->attempts()]);
        $job->delete();
    }

    public function testAQueueThatFailsDoesNotKeepAnotherFromItsPopAfterALostDelivery(): void
    {
        [, $this->redis] = $this->loseOneReplyTo('DQ.POP');
        $this->restartWith(['lease' => 3600, 'block_for' => 1]);
        $this->popsInVain(Queue::push(new Job('a'), '', 'mail'), 'mail');
        $this->server->ask('SET', 'mail', 'no queue');
        $id = Queue::push(new Job('b'));
        $job = Queue::pop('default');
        $this->assertSame($id, $job->getJobId());
        $job->delete();
    }

    private function popsInVain(string $id, string $queue): void
    {
        try {
            Queue::pop($queue);
            $this->fail('the reply is lost');
        } catch (ServerUnreachable) {
            $this->assertSame('inflight', $this->message($id, $queue)['state']);
        }
    }
}
