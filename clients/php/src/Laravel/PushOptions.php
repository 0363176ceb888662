<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Events\CallQueuedListener;
use Illuminate\Mail\SendQueuedMailable;
use Illuminate\Notifications\SendQueuedNotifications;
use ReflectionClass;

/**
 * What a job asks of its push. Only one that uses the trait Options does: the `$priority` or `$ttl` of another job may
 * mean something else. `$messageGroup` is what `onGroup` of Laravel sets. For a mail, a notification or a listener that
 * is queued, Laravel pushes a job of its own, and what is sent or called has the options.
 */
final class PushOptions
{
    /**
     * @param mixed $job what was given to the queue; only an object has options
     * @return list<string|int> without the id and the due time
     */
    public static function of(mixed $job): array
    {
        return [...self::lasting($job), ...self::option(self::whatAsks($job), 'REPLACE') ?? []];
    }

    /**
     * What counts for a retry of the failed job as well.
     *
     * @return list<string|int>
     */
    public static function lasting(mixed $job): array
    {
        $words = [];
        $asks = self::whatAsks($job);
        $group = self::option($asks, 'GROUP') ?? (is_object($job) ? $job->messageGroup ?? null : null);
        if ($group !== null) {
            array_push($words, 'GROUP', $group);
        }
        $priority = self::option($asks, 'PRIORITY', 'priority');
        if ($priority !== null) {
            array_push($words, 'PRIORITY', $priority);
        }
        $ttl = self::option($asks, 'TTL', 'ttl');
        if ($ttl !== null) {
            array_push($words, 'TTL', DueTime::millisecondsFromNow($ttl));
        }
        return $words;
    }

    /** Returns the id that the job was given, or null. A notification is a job for each person and channel. */
    public static function id(mixed $job): ?string
    {
        return $job instanceof SendQueuedNotifications ? null : self::option(self::whatAsks($job), 'ID');
    }

    /** Whether the releases that the job or its middleware ask for count as attempts. */
    public static function releasesCount(mixed $job): bool
    {
        return ! self::option(self::whatAsks($job), 'NOCOUNT', 'releaseUncounted');
    }

    /**
     * @param object|null $asks what uses the trait
     * @param string $option what a method of the trait has chosen
     * @param string|null $property of the same object, if no method has
     */
    private static function option(?object $asks, string $option, ?string $property = null): mixed
    {
        return $asks?->dqOptions[$option] ?? ($property === null ? null : $asks?->$property ?? null);
    }

    /** Returns what a job asks by: itself, or what it sends or calls. Null: that does not use the trait. */
    private static function whatAsks(mixed $job): ?object
    {
        $asks = match (true) {
            $job instanceof SendQueuedMailable => $job->mailable,
            $job instanceof SendQueuedNotifications => $job->notification,
            $job instanceof CallQueuedListener && class_exists($job->class) =>
                (new ReflectionClass($job->class))->newInstanceWithoutConstructor(),
            default => $job,
        };
        return is_object($asks) && is_array($asks->dqOptions ?? null) ? $asks : null;
    }
}
