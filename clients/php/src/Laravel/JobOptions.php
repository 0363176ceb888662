<?php

declare(strict_types=1);

namespace Dq\Laravel;

use DateInterval;
use DateTimeInterface;

/** The methods of the trait Options that every version of Laravel needs. */
trait JobOptions
{
    /**
     * What the methods of this trait have chosen, by the option of DQ.PUSH. One property, so that a job can declare
     * `$priority` or `$ttl` of its own.
     *
     * @var array<string, mixed>
     */
    public array $dqOptions = [];

    /**
     * Gives the job an id of your own. While the queue holds a job of that id, another one is not pushed.
     *
     * @return $this
     */
    public function withId(string|int $id): static
    {
        return $this->choose('ID', (string) $id);
    }

    /**
     * Among the jobs that are ready, those of a higher priority run first.
     *
     * @param int $priority -128 to 127
     * @return $this
     */
    public function withPriority(int $priority): static
    {
        return $this->choose('PRIORITY', $priority);
    }

    /**
     * Time to live: the job fails if it is not done this long after its push or its due time.
     *
     * @param DateTimeInterface|DateInterval|int|float $ttl seconds, if it is a number
     * @return $this
     */
    public function withTtl(DateTimeInterface|DateInterval|int|float $ttl): static
    {
        return $this->choose('TTL', $ttl);
    }

    /**
     * The job takes the place of the job that has its id.
     *
     * @param DateTimeInterface|DateInterval|int|float|null $maxWait how long after the first push of a chain of
     *     replacements the job is due at the latest; seconds, if it is a number
     * @param bool $later if the job of that id runs, this one takes its place when that run ends
     * @return $this
     */
    public function replacing(
        DateTimeInterface|DateInterval|int|float|null $maxWait = null,
        bool $later = false
    ): static {
        $words = ['REPLACE'];
        if ($maxWait !== null) {
            array_push($words, 'MAXWAIT', DueTime::millisecondsFromNow($maxWait));
        }
        if ($later) {
            $words[] = 'LATER';
        }
        return $this->choose('REPLACE', $words);
    }

    /**
     * Before the dispatch: no release that the job or its middleware asks for counts as an attempt. While the job runs:
     * releases it without counting this attempt. A release after an exception counts.
     *
     * @param DateTimeInterface|DateInterval|int|float $delay seconds, if it is a number; only while the job runs
     * @return $this
     */
    public function releaseUncounted(DateTimeInterface|DateInterval|int|float $delay = 0): static
    {
        if (($this->job ?? null) instanceof DqJob) {
            $this->job->releaseUncounted($delay);
            return $this;
        }
        return $this->choose('NOCOUNT', true);
    }

    /** @return $this */
    private function choose(string $option, mixed $value): static
    {
        $this->dqOptions[$option] = $value;
        return $this;
    }
}
