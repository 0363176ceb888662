<?php

declare(strict_types=1);

namespace App\Jobs;

use App\Journal;
use Closure;
use Illuminate\Queue\Middleware\RateLimited;
use Illuminate\Queue\Middleware\ThrottlesExceptions;
use Illuminate\Queue\Middleware\WithoutOverlapping;

/** A job with the middleware that it is asked for. */
final class MiddlewareJob extends Job
{
    public string $middlewareName = '';

    /** @return list<object> */
    public function middleware(): array
    {
        return [match ($this->middlewareName) {
            'without-overlapping' => (new WithoutOverlapping('key'))->releaseAfter(1),
            'without-overlapping-once' => (new WithoutOverlapping('key'))->dontRelease(),
            'rate-limited' => (new RateLimited('one-a-minute')),
            'throttles-exceptions' => new ThrottlesExceptions(1, 10),
            'own' => new class () {
                public function handle(Job $job, Closure $next): void
                {
                    Journal::write("before {$job->name}");
                    $next($job);
                    Journal::write("after {$job->name}");
                }
            },
        }];
    }
}
