<?php

declare(strict_types=1);

namespace Dq\Laravel;

/**
 * What a job asks of its push. Only one that uses the trait Options does: the `$priority` or `$ttl` of another job may
 * mean something else. `$messageGroup` is what `onGroup` of Laravel sets.
 */
final class PushOptions
{
    /**
     * @param mixed $job what was given to the queue; only an object has options
     * @return list<string|int> without the id and the due time
     */
    public static function of(mixed $job): array
    {
        $words = [];
        $group = self::option($job, 'GROUP') ?? (is_object($job) ? $job->messageGroup ?? null : null);
        if ($group !== null) {
            array_push($words, 'GROUP', $group);
        }
        $priority = self::option($job, 'PRIORITY', 'priority');
        if ($priority !== null) {
            array_push($words, 'PRIORITY', $priority);
        }
        $ttl = self::option($job, 'TTL', 'ttl');
        if ($ttl !== null) {
            array_push($words, 'TTL', DueTime::millisecondsFromNow($ttl));
        }
        return [...$words, ...self::option($job, 'REPLACE') ?? []];
    }

    /** Returns the id that the job was given, or null. */
    public static function id(mixed $job): ?string
    {
        return self::option($job, 'ID');
    }

    /** Whether the releases that the job or its middleware ask for count as attempts. */
    public static function releasesCount(mixed $job): bool
    {
        return ! self::option($job, 'NOCOUNT', 'releaseUncounted');
    }

    /**
     * @param string $option what a method of the trait has chosen
     * @param string|null $property of the job, if no method has
     */
    private static function option(mixed $job, string $option, ?string $property = null): mixed
    {
        if (! is_object($job) || ! isset($job->dqOptions) || ! is_array($job->dqOptions)) {
            return null;
        }
        return $job->dqOptions[$option] ?? ($property === null ? null : $job->$property ?? null);
    }
}
