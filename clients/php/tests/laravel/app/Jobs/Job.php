<?php

declare(strict_types=1);

namespace App\Jobs;

use App\Journal;
use Dq\Laravel\Options;
use Illuminate\Bus\Batchable;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use RuntimeException;
use Throwable;

/** A job that does what its words say, one after another, and writes them into the journal. */
class Job implements ShouldQueue
{
    use Batchable;
    use Dispatchable;
    use InteractsWithQueue;
    use Options;
    use Queueable;

    public ?int $tries = null;
    public ?int $maxExceptions = null;
    public ?int $timeout = null;
    /** @var int|list<int>|null */
    public $backoff = null;
    public bool $failOnTimeout = false;
    public bool $dieInFailed = false;

    /** @param list<string> $does such as `sleep 2`, `throw`, `release 1`, `fail`, `kill` */
    public function __construct(public string $name = 'job', public array $does = [])
    {
    }

    /** @param array<string, mixed> $properties */
    public static function make(string $name, array $does = [], array $properties = []): static
    {
        $job = new static($name, $does);
        foreach ($properties as $property => $value) {
            $job->$property = $value;
        }
        return $job;
    }

    public function handle(): void
    {
        Journal::write("run {$this->name} {$this->attempts()}");
        foreach ($this->does as $step) {
            [$act, $argument] = explode(' ', $step . ' ');
            match ($act) {
                'sleep' => $this->rest((float) $argument),
                'throw' => throw new RuntimeException("{$this->name} broke"),
                'throw-until' => $this->isBefore($argument) && throw new RuntimeException("{$this->name} broke"),
                'release' => $this->release((int) $argument),
                'release-until' => $this->isBefore($argument) ? $this->release(0) : null,
                'release-uncounted' => $this->releaseUncounted((float) $argument),
                'fail' => $this->fail(new RuntimeException("{$this->name} is given up")),
                'kill' => posix_kill(getmypid(), SIGKILL),
                'lost' => Journal::write($this->job->lost() ? "lost() {$this->name}" : "held {$this->name}"),
            };
        }
        if (! $this->job?->isReleased()) {
            Journal::write("done {$this->name}");
        }
    }

    public function failed(?Throwable $error): void
    {
        Journal::write("failed {$this->name} " . ($error === null ? '' : get_class($error)));
        if ($this->dieInFailed) {
            posix_kill(getmypid(), SIGKILL);
        }
    }

    private function isBefore(string $attempt): bool
    {
        return $this->attempts() < (int) $attempt;
    }

    /** Sleeps on, whatever signals the process gets. */
    private function rest(float $seconds): void
    {
        $until = microtime(true) + $seconds;
        while (($left = $until - microtime(true)) > 0) {
            usleep((int) ($left * 1_000_000) + 1);
        }
    }
}
