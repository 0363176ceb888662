<?php

declare(strict_types=1);

namespace Dq\Laravel;

use BackedEnum;
use DateInterval;
use DateTimeInterface;
use Dq\Exception\DeadId;
use Dq\Reply;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;
use UnitEnum;

/** Queues of dq as a queue connection of Laravel. Each queue of Laravel is a key: the prefix and the name. */
class DqQueue extends Queue implements QueueContract, ClearableQueue
{
    use InspectsJobs;

    /** Laravel decides how often a job is tried. */
    private const FOREVER = ['RETRIES', -1];

    private ?DeadMessages $deadMessages = null;

    /** @param float $pushTimeout in seconds */
    public function __construct(
        private Link $link,
        private Deliveries $deliveries,
        private string $default,
        private string $prefix,
        private float $pushTimeout,
        bool $afterCommit,
        private bool $storesFailedJobs
    ) {
        $this->dispatchAfterCommit = $afterCommit;
    }

    /**
     * @param string|null $queue
     * @return int
     */
    public function size($queue = null)
    {
        return (int) $this->link->call('DQ.LEN', $this->key($queue));
    }

    /** @param string|null $queue */
    public function pendingSize($queue = null): int
    {
        return (int) $this->link->call('DQ.LEN', $this->key($queue), 'ready');
    }

    /** @param string|null $queue */
    public function delayedSize($queue = null): int
    {
        return (int) $this->link->call('DQ.LEN', $this->key($queue), 'delayed');
    }

    /** @param string|null $queue */
    public function reservedSize($queue = null): int
    {
        return (int) $this->link->call('DQ.LEN', $this->key($queue), 'inflight');
    }

    /**
     * @param string|null $queue
     * @return int|null Unix time in seconds
     */
    public function creationTimeOfOldestPendingJob($queue = null): ?int
    {
        $first = $this->link->call('DQ.PEEK', $this->key($queue), 'ready')[0] ?? null;
        return $first === null ? null : intdiv((int) Reply::map($first)['created'], 1000);
    }

    /**
     * @param object|string $job
     * @param mixed $data
     * @param string|null $queue
     * @return string|null the id; null: the queue has a job of the id that was asked for
     */
    public function push($job, $data = '', $queue = null)
    {
        return $this->enqueue(null, $job, $data, $queue);
    }

    /**
     * @param DateTimeInterface|DateInterval|int|float $delay seconds, if it is a number
     * @param object|string $job
     * @param mixed $data
     * @param string|null $queue
     * @return string|null the id; null: the queue has a job of the id that was asked for
     */
    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->enqueue($delay, $job, $data, $queue);
    }

    /**
     * @param string $payload of a new job, or of a failed one, in whose place it is pushed
     * @param string|null $queue
     * @param array<int, string|int> $options words of DQ.PUSH; none: those with which the job was pushed before
     * @return string|null the id; null: the queue has this job already
     * @throws IdTaken if the queue has another job of that id: `queue:retry` then keeps the failed job
     */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $key = $this->key($queue);
        try {
            $pushed = $this->send($payload, $key, $options ?: $this->lastingOptions($payload));
        } catch (DeadId) {
            $pushed = null;
        }
        return $pushed ?? $this->pushRefused($payload, $key, (string) $this->idOf($payload), $options);
    }

    /**
     * Pushes jobs; those with equal options in one step.
     *
     * @param array<int, object|string> $jobs
     * @param mixed $data
     * @param string|null $queue
     * @return void
     */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $bulk = new Bulk($this->link, $this->key($queue), $this->pushTimeout);
        $someWait = false;
        foreach ((array) $jobs as $job) {
            $delay = $this->delayOf($job);
            $payload = $this->createPayload($job, $this->name($queue), $data, $delay);
            $options = [...self::FOREVER, ...DueTime::option($delay), ...PushOptions::of($job)];
            $someWait = $someWait || $this->shouldDispatchAfterCommit($job);
            // Laravel calls this now, or after the commit.
            $this->enqueueUsing($job, $payload, $queue, $delay, function ($payload) use ($bulk, $options) {
                $id = (string) $this->idOf($payload);
                $bulk->add($id, $payload, $options);
                return $id;
            });
        }
        if ($someWait && $this->container->bound('db.transactions')) {
            $this->container->make('db.transactions')->addCallback(fn () => $bulk->push());
        }
        $bulk->push();
    }

    /**
     * Waits for a job for `block_for` seconds.
     *
     * @param string|null $queue
     * @param int $index
     * @return DqJob|null
     */
    public function pop($queue = null, $index = 0)
    {
        $delivery = $this->deliveries->take($this->name($queue));
        return $delivery === null ? null : new DqJob(
            $this->container,
            $this->deliveries,
            $delivery,
            $this->connectionName,
            $this->storesFailedJobs
        );
    }

    /**
     * Removes a job in any state.
     *
     * @param string|null $queue
     * @return string|null the state it was in, such as `delayed`, `ready` or `inflight`; null: there is none of this id
     */
    public function cancel(string $id, $queue = null): ?string
    {
        return $this->link->call('DQ.CANCEL', $this->key($queue), $id)[0] ?: null;
    }

    /**
     * Gives a job that waits another due time.
     *
     * @param DateTimeInterface|DateInterval|int|float $delay seconds from now, if it is a number
     * @param string|null $queue
     * @return bool whether there is such a job
     */
    public function reschedule(string $id, mixed $delay, $queue = null): bool
    {
        return (int) $this->link->call('DQ.RESCHEDULE', $this->key($queue), $id, ...DueTime::option($delay)) === 1;
    }

    /**
     * Removes all jobs but the failed ones.
     *
     * @param string|null $queue
     * @return int
     */
    public function clear($queue)
    {
        return (int) $this->link->call('DQ.PURGE', $this->key($queue), 'delayed', 'ready', 'inflight');
    }

    /** Whether a pop that finds nothing has waited for a job. */
    public function waits(): bool
    {
        return $this->deliveries->blockFor > 0;
    }

    /**
     * A worker is going to pop.
     *
     * @param int $timeout of jobs that have none, in seconds; 0: none
     * @param bool $waits whether it is to wait for jobs
     */
    public function workFor(int $timeout, bool $waits): void
    {
        $this->deliveries->workFor($timeout, $waits);
    }

    /**
     * A worker is going to pop from each of these queues in turn: the first pop waits for all of them.
     *
     * @param list<string> $queues
     */
    public function beginRound(array $queues): void
    {
        $this->deliveries->beginRound(array_map($this->name(...), $queues));
    }

    /** The failed jobs, as dead messages of the server. */
    public function deadMessages(): DeadMessages
    {
        return $this->deadMessages ??= new DeadMessages($this->link, fn (string $queue): string => $this->key($queue));
    }

    /**
     * @param \Closure|object|string $job
     * @param mixed $data
     * @param string|null $queue
     */
    private function enqueue(mixed $delay, $job, $data, $queue): mixed
    {
        $payload = $this->createPayload($job, $this->name($queue), $data, $delay);
        $options = [...DueTime::option($delay), ...PushOptions::of($job)];
        return $this->enqueueUsing(
            $job,
            $payload,
            $queue,
            $delay,
            fn ($payload, $queue) => $this->send($payload, $this->key($queue), $options)
        );
    }

    /** @param array<int, string|int> $options */
    private function send(string $payload, string $key, array $options): ?string
    {
        $words = ['DQ.PUSH', $key, $payload, ...self::FOREVER, ...$options];
        $id = $this->idOf($payload);
        if ($id === null) {
            return $this->link->call(...$words);
        }
        // The id makes a push that is repeated the same push.
        $answer = $this->link->repeat($this->pushTimeout, [...$words, 'ID', $id]);
        return $answer ?? ($this->link->mayBeDone() ? $id : null);
    }

    /**
     * The queue has, or remembers, the id of a payload. A job that is stored in a table when it fails is done for the
     * queue, which keeps it for its RETAIN, or only its id for its DEDUPE.
     *
     * @param array<int, string|int> $options
     * @throws IdTaken
     */
    private function pushRefused(string $payload, string $key, string $id, array $options): ?string
    {
        $message = Reply::map($this->link->call('DQ.GET', $key, $id) ?: []);
        if (isset($message['payload']) && $this->uuidOf($message['payload']) !== $this->uuidOf($payload)) {
            throw new IdTaken("The job was not pushed: another one in the queue [{$key}] has its id [{$id}].");
        }
        $isLive = in_array($message['state'] ?? null, ['delayed', 'ready', 'inflight'], true);
        $pushed = $isLive ? null : $this->pushAgain($payload, $key, $id, $options, $message);
        $this->deadMessages()->runsAgain($id); // If it is live, another process may have retried the failed job.
        return $pushed;
    }

    /**
     * Puts a failed job back in the place of its dead message, with what that was pushed with.
     *
     * @param array<int, string|int> $options
     * @param array<string, mixed> $message that dead or done message; none: the queue only remembers the id
     */
    private function pushAgain(string $payload, string $key, string $id, array $options, array $message): string
    {
        $kept = isset($message['priority']) ? [] : $this->lastingOptions($payload);
        foreach (['priority' => 'PRIORITY', 'group' => 'GROUP', 'ttl' => 'TTL'] as $field => $option) {
            if (isset($message[$field])) {
                array_push($kept, $option, $message[$field]);
            }
        }
        $words = ['DQ.PUSH', $key, $payload, ...self::FOREVER, ...($options ?: $kept), 'ID', $id, 'REPLACE'];
        return $this->link->call(...$words);
    }

    /**
     * @param \Closure|object|string $job
     * @param string $queue
     * @param mixed $data
     * @return array<string, mixed>
     */
    protected function createPayloadArray($job, $queue, $data = '')
    {
        $own = [];
        if (($id = PushOptions::id($job)) !== null) {
            $own['id'] = $id;
        }
        if (! PushOptions::releasesCount($job)) {
            $own['releaseUncounted'] = true;
        }
        if (($options = PushOptions::lasting($job)) !== []) {
            $own['pushOptions'] = $options;
        }
        return array_merge(parent::createPayloadArray($job, $queue, $data), $own);
    }

    /** The id of the message: that which the job was given, else the one that Laravel gives every job. */
    private function idOf(string $payload): ?string
    {
        $decoded = json_decode($payload, true);
        $id = is_array($decoded) ? $decoded['id'] ?? $decoded['uuid'] ?? null : null;
        return is_scalar($id) && $id !== '' ? (string) $id : null;
    }

    private function uuidOf(string $payload): mixed
    {
        $decoded = json_decode($payload, true);
        return is_array($decoded) ? $decoded['uuid'] ?? null : null;
    }

    /** @return list<string|int> what the job of a payload asked for when it was pushed first */
    private function lastingOptions(string $payload): array
    {
        $decoded = json_decode($payload, true);
        $options = is_array($decoded) ? $decoded['pushOptions'] ?? [] : [];
        return is_array($options) ? array_values($options) : [];
    }

    private function delayOf(mixed $job): mixed
    {
        if (! is_object($job)) {
            return null;
        }
        // Laravel 13 has an attribute for it.
        return method_exists($this, 'getAttributeValue')
            ? $this->getAttributeValue($job, 'Illuminate\Queue\Attributes\Delay', 'delay')
            : $job->delay ?? null;
    }

    /** @param UnitEnum|string|null $queue */
    private function name($queue): string
    {
        $name = $queue instanceof BackedEnum ? $queue->value : ($queue instanceof UnitEnum ? $queue->name : $queue);
        $name = (string) $name === '' ? $this->default : (string) $name;
        return method_exists($this, 'resolveQueue') ? $this->resolveQueue($name) : $name;
    }

    /** @param UnitEnum|string|null $queue */
    private function key($queue): string
    {
        return $this->prefix . $this->name($queue);
    }
}
