<?php

declare(strict_types=1);

namespace App;

use App\Jobs\Job;
use Closure;
use Illuminate\Bus\Batch;
use Illuminate\Support\Facades\Queue;

/** Closures of a class that workers know, too. */
final class Closures
{
    public static function write(string $line): Closure
    {
        return static function () use ($line): void {
            Journal::write($line);
        };
    }

    public static function writeSize(): Closure
    {
        return static function (Batch $batch): void {
            Journal::write("batch {$batch->totalJobs}");
        };
    }

    public static function push(string $queue): Closure
    {
        return static function () use ($queue): void {
            Queue::push(new Job('pushed'), '', $queue);
        };
    }
}
