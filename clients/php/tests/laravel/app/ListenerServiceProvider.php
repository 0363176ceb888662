<?php

declare(strict_types=1);

namespace App;

use Dq\Laravel\JobLost;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\Facades\RateLimiter;
use Illuminate\Support\ServiceProvider;
use Illuminate\Cache\RateLimiting\Limit;

/** Writes into the journal what the events of the queue say. */
final class ListenerServiceProvider extends ServiceProvider
{
    public function boot(): void
    {
        Event::listen(JobLost::class, fn (JobLost $lost) => Journal::write("lost {$lost->job->getJobId()}"));
        Event::listen(JobFailed::class, function (JobFailed $failed): void {
            Journal::write('job-failed ' . get_class($failed->exception));
            if (str_contains($failed->job->getRawBody(), 'die-in-listener')) {
                posix_kill(getmypid(), SIGKILL);
            }
        });
        Event::listen(OrderShipped::class, TellCustomer::class);
        RateLimiter::for('one-a-minute', fn () => Limit::perMinute(1));
    }
}
