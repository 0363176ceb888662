<?php

declare(strict_types=1);

namespace Dq\Laravel;

use DateInterval;
use DateTimeInterface;
use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Queue\Jobs\Job;
use Illuminate\Queue\MaxAttemptsExceededException;
use Throwable;

/** A message that this worker holds. Its attempts are counted by the server, so that a killed worker counts. */
class DqJob extends Job implements JobContract
{
    /** The longest error that the server keeps, in bytes. */
    private const ERROR_BYTES = 1024;

    /** @var array<string, mixed> */
    private array $decoded;

    private bool $failing = false;

    private ?Throwable $exception = null;

    private ?Throwable $raisedByFailed = null;

    /**
     * @param string $connectionName
     * @param bool $storesFailedJobs whether a dead message is the failed job
     */
    public function __construct(
        Container $container,
        private Deliveries $deliveries,
        private Delivery $delivery,
        $connectionName,
        private bool $storesFailedJobs
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $delivery->queue;
        $decoded = json_decode($delivery->payload, true);
        $this->decoded = is_array($decoded) && is_string($decoded['job'] ?? null) ? $decoded : $this->unreadable();
    }

    /** @return void */
    public function delete()
    {
        $isSettled = $this->failing || $this->isDeletedOrReleased();
        parent::delete();
        if (! $isSettled && ! $this->deliveries->ack($this->delivery)) {
            $this->reportLoss();
        }
    }

    /**
     * @param DateTimeInterface|DateInterval|int|float|string|null $delay seconds, if it is a number
     * @return void
     */
    public function release($delay = 0)
    {
        $this->giveBack($delay, $this->exception !== null || ! ($this->decoded['releaseUncounted'] ?? false));
    }

    /**
     * Releases the job without counting this attempt.
     *
     * @param DateTimeInterface|DateInterval|int|float $delay seconds, if it is a number
     */
    public function releaseUncounted(DateTimeInterface|DateInterval|int|float $delay = 0): void
    {
        $this->giveBack($delay, false);
    }

    /**
     * The job stays on the server until the failed job is stored.
     *
     * @param Throwable|null $e
     * @return void
     */
    public function fail($e = null)
    {
        $isSettled = $this->isDeletedOrReleased();
        $this->failing = true;
        if ($isSettled) {
            parent::fail($e);
            return;
        }
        if ($this->storesFailedJobs) {
            // The dead message is the failed job, from this instant on.
            $this->deliveries->bury($this->delivery, $this->textOf($e)) || $this->reportLoss();
            parent::fail($e);
            return;
        }
        try {
            parent::fail($e);
        } catch (Throwable $error) {
            if ($error !== $this->raisedByFailed) {
                $this->notStored($error);
            } else {
                $this->deliveries->ack($this->delivery);
            }
            throw $error;
        }
        $this->deliveries->ack($this->delivery) || $this->reportLoss();
    }

    /** The worker has caught this exception; a release counts from now on. */
    public function threw(Throwable $exception): void
    {
        $this->exception = $exception;
    }

    /** The job has run for too long, and its worker ends: it waits for the backoff of the queue, as after a crash. */
    public function timedOut(): void
    {
        if (! $this->isDeletedOrReleased()) {
            parent::release();
            $this->deliveries->giveUp($this->delivery, "{$this->resolveName()} has timed out");
        }
    }

    /** Whether this worker has lost the job, because its lease ended or somebody cancelled or replaced it. */
    public function lost(): bool
    {
        return $this->deliveries->isLost($this->delivery);
    }

    /** @return array<string, mixed> */
    public function payload()
    {
        return $this->decoded;
    }

    /** @return int */
    public function attempts()
    {
        return $this->delivery->attempt;
    }

    /** @return string */
    public function getJobId()
    {
        return $this->delivery->id;
    }

    /** @return string */
    public function getRawBody()
    {
        return $this->delivery->payload;
    }

    /**
     * Calls `failed()` of the job.
     *
     * @param Throwable|null $e
     * @return void
     */
    protected function failed($e)
    {
        try {
            parent::failed($e);
        } catch (Throwable $error) {
            $this->raisedByFailed = $error;
            throw $error;
        }
    }

    /** @param DateTimeInterface|DateInterval|int|float|string|null $delay seconds, if it is a number */
    private function giveBack(mixed $delay, bool $counts): void
    {
        $isSettled = $this->isDeletedOrReleased();
        parent::release($delay);
        if ($isSettled) {
            return;
        }
        $error = $this->exception === null ? null : $this->textOf($this->exception);
        $state = $this->deliveries->release($this->delivery, DueTime::millisecondsFromNow($delay), $error, $counts);
        if ($state === null) {
            $this->reportLoss();
        } elseif ($state === 'dead') {
            $this->died();
        }
    }

    /** The message has RETRIES or a TTL of its own, which have ended, so that Laravel must hear of it. */
    private function died(): void
    {
        $error = $this->exception ?? new MaxAttemptsExceededException("{$this->resolveName()} is dead on the server.");
        $this->failing = true;
        parent::delete();
        $this->markAsFailed();
        try {
            $this->failed($error);
        } finally {
            $this->container['events']->dispatch(new JobFailed($this->connectionName, $this, $error));
        }
    }

    /** The store of failed jobs has refused the job: retry it, or make it a dead message if nothing can store it. */
    private function notStored(Throwable $error): void
    {
        if ($this->decoded['job'] === UnreadablePayload::class . '@call') {
            $this->deliveries->bury($this->delivery, $this->textOf($error));
        } else {
            $this->deliveries->release($this->delivery, 60_000, $this->textOf($error), true);
        }
    }

    private function reportLoss(): void
    {
        $this->container['log']->warning(
            "The job {$this->resolveName()} of the queue {$this->queue} was lost while it ran: its lease ended, or it "
            . 'was cancelled or replaced.',
            ['id' => $this->delivery->id, 'attempt' => $this->delivery->attempt]
        );
        $this->container['events']->dispatch(new JobLost($this->connectionName, $this));
    }

    private function textOf(?Throwable $error): string
    {
        if ($error === null) {
            return 'failed without an exception';
        }
        $text = get_class($error) . ': ' . $error->getMessage() . " in {$error->getFile()}:{$error->getLine()}";
        return mb_strcut(mb_convert_encoding($text, 'UTF-8', 'UTF-8'), 0, self::ERROR_BYTES, 'UTF-8');
    }

    /** @return array<string, mixed> the payload of a job that fails */
    private function unreadable(): array
    {
        return [
            'uuid' => $this->delivery->id,
            'displayName' => 'unreadable payload',
            'job' => UnreadablePayload::class . '@call',
            'data' => [],
        ];
    }
}
