<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use Illuminate\Support\Facades\Queue;

/** Jobs that `dqctl import laravel --move` takes over from the driver redis. */
final class ImportTest extends TestCase
{
    public function testJobsOfTheDriverRedisRunOnDq(): void
    {
        $program = getenv('DQCTL') ?: null;
        if ($program === null) {
            $this->markTestSkipped('DQCTL does not name dqctl');
        }
        $redis = Queue::connection('redis');
        $redis->push(new Job('ready'));
        $due = self::milliseconds() + 1000; // The driver redis counts in whole seconds.
        $redis->later(2, new Job('delayed'));
        $redis->push(new Job('failing', ['throw']));

        $url = "redis://127.0.0.1:{$this->server->port}";
        $moves = new Process(
            [$program, 'import', 'laravel', 'queues:default', 'default', '--move', '--url', $url],
            "{$this->directory}/import",
            []
        );
        $this->eventually('the import ends', fn (): bool => ! $moves->isRunning());
        $this->assertSame(0, $moves->exitCode(), $moves->output());
        $this->assertSame(0, $redis->size());
        $this->assertSame(3, Queue::size());

        $this->work('--tries=2');
        $this->untilWritten('done ready');
        $this->untilWritten('done delayed');
        $this->untilWritten('failed failing RuntimeException');
        $this->assertGreaterThanOrEqual($due, $this->writtenAt('run delayed 1'));
        $this->eventually('nothing is left', fn (): bool => Queue::size() === 0);

        [$failed] = $this->app['queue.failer']->all();
        $this->artisan('queue:retry', ['id' => [$failed->uuid ?? $failed->id]]);
        $this->untilWritten('run failing 1', 2);
    }
}
