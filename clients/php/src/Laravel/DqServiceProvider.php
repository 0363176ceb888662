<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Console\Events\CommandStarting;
use Illuminate\Queue\Events\JobExceptionOccurred;
use Illuminate\Queue\Events\Looping;
use Illuminate\Queue\QueueManager;
use Illuminate\Support\Arr;
use Illuminate\Support\ServiceProvider;
use InvalidArgumentException;

/** Makes the driver `dq` known, and the worker of Laravel ready for it. */
class DqServiceProvider extends ServiceProvider
{
    /** An event that Laravel 8 does not have. There the keeper gives the job of a killed worker back. */
    private const TIMED_OUT = 'Illuminate\Queue\Events\JobTimedOut';

    /** The connection of an application that does not configure one of this name. */
    private const CONNECTION = ['driver' => 'dq', 'connection' => 'default', 'queue' => 'default'];

    public function register(): void
    {
        $config = $this->app->make('config');
        if (! $config->has('queue.connections.dq')) {
            $config->set('queue.connections.dq', self::CONNECTION);
        }
        $this->app->resolving('queue', fn (QueueManager $manager) => $this->addConnector($manager));
        if ($this->app->resolved('queue')) {
            $this->addConnector($this->app->make('queue'));
        }
    }

    public function boot(): void
    {
        $config = $this->app->make('config');
        if ($config->get('queue.failed.driver') === 'dq') {
            $this->app->extend('queue.failer', fn () => $this->failedJobs($config->get('queue')));
        }
        $events = $this->app->make('events');
        $events->listen(CommandStarting::class, [WorkCommandSettings::class, 'handle']);
        $events->listen(Looping::class, function (Looping $looping): void {
            $this->beginRound($looping->connectionName, explode(',', (string) $looping->queue));
        });
        $events->listen(JobExceptionOccurred::class, function (JobExceptionOccurred $event): void {
            if ($event->job instanceof DqJob) {
                $event->job->threw($event->exception);
            }
        });
        // The worker is about to kill itself.
        $events->listen(self::TIMED_OUT, function (object $event): void {
            if ($event->job instanceof DqJob) {
                $event->job->timedOut();
            }
        });
    }

    private function addConnector(QueueManager $manager): void
    {
        $manager->addConnector('dq', fn (): DqConnector => new DqConnector($this->app));
    }

    /** @param list<string> $queues */
    private function beginRound(string $connectionName, array $queues): void
    {
        $manager = $this->app->make('queue');
        $connection = $manager->connection($connectionName);
        if (! $connection instanceof DqQueue) {
            return;
        }
        // Since Laravel 12 queues can be paused. The worker itself looks at a single one.
        if (count($queues) > 1 && method_exists($manager, 'getPausedQueues')) {
            $queues = array_values(array_diff($queues, $manager->getPausedQueues($connectionName, $queues)));
        }
        $connection->beginRound($queues);
    }

    /** @param array<string, mixed> $config of queues */
    private function failedJobs(array $config): DqFailedJobProvider
    {
        $ofDq = array_filter($config['connections'], fn (array $one): bool => ($one['driver'] ?? null) === 'dq');
        if ($ofDq === []) {
            throw new InvalidArgumentException(
                "Failed jobs of the driver 'dq' need a queue connection of that driver."
            );
        }
        // Connections with the same keys would show each failed job twice.
        $keys = [];
        foreach ($ofDq as $name => $one) {
            $keys[json_encode([$one['connection'] ?? 'default', $one['prefix'] ?? ''])] ??= $name;
        }
        $manager = $this->app->make('queue');
        $connections = [];
        foreach ($keys as $name) {
            $connections[$name] = $manager->connection($name);
        }
        $defaults = array_map(fn (array $one): string => $one['queue'] ?? 'default', $ofDq);
        $queues = array_values(array_unique(Arr::wrap($config['failed']['queues'] ?? $defaults)));
        return new DqFailedJobProvider($connections, array_keys($ofDq), $queues, $this->app->make('log'));
    }
}
