<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use App\OrderShipped;
use App\ShippedMail;
use App\ShippedNotification;
use Dq\Exception\DeadId;
use Dq\Exception\NoModule;
use Dq\Exception\QueueFull;
use Dq\Laravel\ServerUnreachable;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\Facades\Mail;
use Illuminate\Support\Facades\Notification;
use Illuminate\Support\Facades\Queue;
use Throwable;

/** Pushes: once, in one step, with all options, and with clear errors. */
final class PushTest extends TestCase
{
    /** @var array<string, mixed>|null */
    private ?array $redis = null;

    protected function redisSettings(): array
    {
        return $this->redis ?? parent::redisSettings();
    }

    public function testAPushWhoseReplyWasLostIsMadeOnce(): void
    {
        [$proxy, $this->redis] = $this->loseOneReplyTo('DQ.PUSH');
        $this->boot();
        $id = Queue::push(new Job('a'));
        $this->assertStringContainsString('cut', $proxy->output());
        $this->assertSame(1, (int) $this->server->ask('DQ.LEN', 'default'));
        $this->assertSame($id, $this->peek('default', 'ready')[0]['id']);
    }

    public function testAFailedJobOfAnotherConnectionIsStoredAlthoughTheReplyWasLost(): void
    {
        [$proxy, $this->redis] = $this->loseOneReplyTo('DQ.PUSH');
        $this->boot();
        $dead = Queue::connection()->deadMessages();
        $this->assertSame('u-1', $dead->store('redis', 'default', 'reports', '{"uuid":"u-1","job":"x"}', 'broke'));
        $this->assertStringContainsString('cut', $proxy->output());
        $this->assertSame(1, (int) $this->server->ask('DQ.LEN', 'default', 'dead'));
    }

    public function testAPushWithoutAServerFailsWithItsAddress(): void
    {
        $this->restartWith(['push_timeout' => 1]);
        $this->server->down();
        $error = $this->errorOf(fn () => Job::dispatch('a')->onConnection('dq'));
        $this->assertInstanceOf(ServerUnreachable::class, $error);
        $this->assertStringContainsString("127.0.0.1:{$this->server->port}", $error->getMessage());
        $this->assertStringNotContainsString("\n", $error->getMessage());
    }

    public function testAServerWithoutTheModuleIsNamed(): void
    {
        $bare = TestServer::start([], false);
        $this->redis = ['client' => 'phpredis', 'default' => ['host' => '127.0.0.1', 'port' => $bare->port]];
        $this->boot();
        $error = $this->errorOf(fn () => Queue::push(new Job('a')));
        $this->assertInstanceOf(NoModule::class, $error);
        $this->assertStringContainsString('the server has not loaded the module dq', $error->getMessage());
        $this->work();
        $this->eventually(
            'the log of the worker has it',
            fn (): bool => str_contains($this->log(), 'the server has not loaded the module dq')
        );
        $bare->stop();
    }

    public function testAFullQueueRefusesAPush(): void
    {
        $this->server->ask('DQ.CREATE', 'default', 'MAXLEN', '1');
        Queue::push(new Job('a'));
        $this->assertInstanceOf(QueueFull::class, $this->errorOf(fn () => Queue::push(new Job('b'))));
    }

    public function testBulkTakesOneRoundTripForEqualOptions(): void
    {
        $jobs = [];
        for ($number = 0; $number < 1000; $number++) {
            $jobs[] = new Job("job-{$number}");
        }
        Queue::bulk($jobs);
        $this->assertSame(1000, Queue::size());
        $this->assertSame(1, $this->calls('mpush'));
        $this->assertSame(0, $this->calls('push'));
        $this->assertSame($this->nameOf($this->peek('default', 'ready')[999]), 'job-999');
    }

    public function testBulkOfDelayedJobsKeepsTheirOptions(): void
    {
        Queue::bulk([
            Job::make('a', [], ['delay' => 60]),
            (new Job('b'))->withPriority(3),
            (new Job('c'))->withPriority(3),
        ]);
        $this->assertSame([2, 1], [Queue::connection()->pendingSize(), Queue::connection()->delayedSize()]);
        $this->assertSame(2, $this->calls('mpush'));
        $this->assertSame(3, (int) $this->peek('default', 'ready')[0]['priority']);
    }

    public function testBulkPushesAllOrNone(): void
    {
        $this->server->ask('DQ.CREATE', 'default', 'MAXLEN', '2');
        $error = $this->errorOf(fn () => Queue::bulk([new Job('a'), new Job('b'), new Job('c')]));
        $this->assertInstanceOf(QueueFull::class, $error);
        $this->assertSame(0, Queue::size());
    }

    public function testBulkNamesTheIdOfAFailedJobAndPushesTheOthers(): void
    {
        foreach (['phpredis', 'predis'] as $client) {
            $this->redis = ['client' => $client] + parent::redisSettings();
            $this->boot();
            $this->server->ask('DQ.PURGE', 'default');
            $this->server->ask('DQ.PUSH', 'default', 'x', 'ID', 'order-7', 'DEAD');
            $jobs = [(new Job('a'))->withId('order-7'), new Job('b'), (new Job('c'))->withPriority(3)];
            $error = $this->errorOf(fn () => Queue::bulk($jobs));
            $this->assertInstanceOf(DeadId::class, $error);
            $this->assertStringContainsString('order-7', $error->getMessage());
            $this->assertSame(2, Queue::size());
        }
    }

    public function testBulkInATransactionWaitsForTheCommit(): void
    {
        $this->restartWith(['after_commit' => true]);
        $this->app['db']->transaction(function (): void {
            Queue::bulk([new Job('a'), new Job('b')]);
            Queue::push(new Job('c'));
            $this->assertSame(0, Queue::size());
        });
        $this->assertSame(3, Queue::size());
        $this->assertSame(1, $this->calls('mpush'));
    }

    public function testAPushTellsTheIdUnderWhichTheJobIsCancelledOrMoved(): void
    {
        $queue = Queue::connection('dq');
        $id = $queue->later(now()->addHour(), new Job('a'));
        $this->assertTrue($queue->reschedule($id, now()->addDay()));
        $this->assertEqualsWithDelta(86_400_000 + self::milliseconds(), $this->message($id)['due'], 120_000);
        $this->assertTrue($queue->reschedule($id, 60));
        $this->assertSame('delayed', $queue->cancel($id));
        $this->assertNull($queue->cancel($id));
        $this->assertFalse($queue->reschedule($id, 60));
        $this->assertSame('ready', $queue->cancel($queue->push(new Job('b'), '', 'other'), 'other'));
        $id = $queue->push(new Job('c'));
        $this->server->ask('DQ.POP', 'default');
        $this->assertSame('inflight', $queue->cancel($id));
    }

    public function testAnIdOfOnesOwnIsPushedOnce(): void
    {
        $this->assertSame('order-7', Queue::push((new Job('a'))->withId('order-7')));
        $this->assertNull(Queue::push((new Job('b'))->withId('order-7')));
        $this->assertSame('order-7', Queue::later(60, (new Job('c'))->withId('order-7')->replacing()));
        $this->assertSame('c', $this->nameOf($this->message('order-7')));
        $this->assertSame('delayed', $this->message('order-7')['state']);
    }

    public function testAReplacementCanWaitForTheRunThatItReplaces(): void
    {
        Queue::push((new Job('a'))->withId('order-7'));
        $this->server->ask('DQ.POP', 'default');
        Queue::push((new Job('b'))->withId('order-7')->replacing(later: true));
        $this->assertSame('inflight', $this->message('order-7')['state']);
        $this->server->ask('DQ.ACK', 'default', 'order-7');
        $this->assertSame('b', $this->nameOf($this->message('order-7')));
    }

    public function testReplacementsCannotPostponeAJobForEver(): void
    {
        $pushed = self::milliseconds();
        Queue::later(60, (new Job('a'))->withId('order-7')->replacing(90));
        Queue::later(3600, (new Job('b'))->withId('order-7')->replacing(90));
        $this->assertEqualsWithDelta($pushed + 90_000, $this->message('order-7')['due'], 60_000);
    }

    public function testAFailedJobKeepsItsIdUntilItIsReplaced(): void
    {
        Queue::push((new Job('a'))->withId('order-7'));
        $this->server->ask('DQ.BURY', 'default', 'order-7');
        $this->assertInstanceOf(DeadId::class, $this->errorOf(fn () => Queue::push((new Job('b'))->withId('order-7'))));
        $this->assertSame('order-7', Queue::push((new Job('b'))->withId('order-7')->replacing()));
    }

    public function testOptionsAreThoseOfTheCommands(): void
    {
        Job::dispatch('a')->onGroup('customer-7')->withPriority(5)->withTtl(90)->withId('a');
        $message = $this->message('a');
        $this->assertSame('customer-7', $message['group']);
        $this->assertSame(5, (int) $message['priority']);
        $this->assertSame(90_000, (int) $message['ttl']);
        $this->assertSame(-1, (int) $message['retries']);
    }

    public function testAMailThatIsQueuedHasTheOptionsOfTheTrait(): void
    {
        Mail::to('customer@example.org')->queue((new ShippedMail('1001'))->withId('mail-1001')->withPriority(5));
        $this->assertSame(5, (int) $this->message('mail-1001')['priority']);
    }

    public function testANotificationHasTheOptionsOfTheTraitButNoIdAsItIsAJobForEachChannel(): void
    {
        $notification = (new ShippedNotification('1001'))->withId('note-1001')->withPriority(5);
        Notification::route('journal', 'customer')->notify($notification);
        $this->assertNull($this->message('note-1001'));
        $this->assertSame(5, (int) $this->peek('default', 'ready')[0]['priority']);
    }

    public function testAListenerHasTheOptionsThatAreItsProperties(): void
    {
        Event::dispatch(new OrderShipped('1001'));
        $this->assertSame(5, (int) $this->peek('default', 'ready')[0]['priority']);
    }

    public function testAPropertyOfTheJobIsItsPriority(): void
    {
        Queue::push(new \App\Jobs\ImportantJob('a'));
        $this->assertSame(5, (int) $this->peek('default', 'ready')[0]['priority']);
    }

    public function testTheSamePropertyOfAJobWithoutTheTraitIsItsOwnAffair(): void
    {
        Queue::push(new \App\Jobs\PlainJob());
        $this->assertSame(0, (int) $this->peek('default', 'ready')[0]['priority']);
    }

    public function testAReleaseCanBeUncounted(): void
    {
        dispatch(Job::make('a', ['release-uncounted 0'], ['tries' => 1]));
        $this->work('--max-jobs=3');
        $this->eventually('three runs', fn (): bool => count($this->journal('run')) === 3);
        $this->assertSame(['run a 1', 'run a 1', 'run a 1'], $this->journal('run'));
    }

    public function testMiddlewareThatReleasesCanSpendNoAttempts(): void
    {
        dispatch(Job::make('a', ['release 0'], ['tries' => 1])->releaseUncounted());
        $this->work('--max-jobs=3');
        $this->eventually('three runs', fn (): bool => count($this->journal('run')) === 3);
        $this->assertSame(['run a 1', 'run a 1', 'run a 1'], $this->journal('run'));
    }

    public function testAnExceptionCountsAlthoughReleasesDoNot(): void
    {
        dispatch(Job::make('a', ['throw'], ['tries' => 2])->releaseUncounted());
        $this->work();
        $this->untilWritten('failed a RuntimeException');
        $this->assertSame(['run a 1', 'run a 2'], $this->journal('run'));
    }

    public function testThePrefixIsPartOfTheKey(): void
    {
        $this->redis = parent::redisSettings() + ['options' => ['prefix' => 'app:']];
        $this->restartWith(['prefix' => 'jobs:', 'block_for' => 1]);
        Job::dispatch('a');
        $this->assertSame(1, (int) $this->server->ask('DQ.LEN', 'app:jobs:default'));
        $this->work('--once');
        $this->untilWritten('done a');
    }

    /** @param array<string, mixed> $message */
    private function nameOf(array $message): string
    {
        return unserialize(json_decode($message['payload'], true)['data']['command'])->name;
    }

    private function errorOf(callable $act): ?Throwable
    {
        try {
            $pending = $act();
            unset($pending); // A dispatch happens when what it returned is destroyed.
        } catch (Throwable $error) {
            return $error;
        }
        return null;
    }
}
