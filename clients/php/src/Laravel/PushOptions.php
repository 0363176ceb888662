<?php

declare(strict_types=1);

namespace Dq\Laravel;

/** What a job asks of its push: by the methods of the trait Options, or by properties of its own. */
final class PushOptions
{
    /** The properties of a job, and the options of DQ.PUSH that they become. */
    private const PROPERTIES = ['messageGroup' => 'GROUP', 'priority' => 'PRIORITY'];

    /**
     * @param mixed $job what was given to the queue; only an object has options
     * @return list<string|int> without the id and the due time
     */
    public static function of(mixed $job): array
    {
        if (! is_object($job)) {
            return [];
        }
        $chosen = self::chosen($job);
        $words = [];
        foreach (self::PROPERTIES as $property => $option) {
            $value = $chosen[$option] ?? $job->$property ?? null;
            if ($value !== null) {
                array_push($words, $option, $value);
            }
        }
        $seconds = $chosen['TTL'] ?? $job->ttl ?? null;
        if ($seconds !== null) {
            array_push($words, 'TTL', DueTime::millisecondsFromNow($seconds));
        }
        return [...$words, ...$chosen['REPLACE'] ?? []];
    }

    /** Returns the id that the job was given, or null. */
    public static function id(mixed $job): ?string
    {
        return is_object($job) ? self::chosen($job)['ID'] ?? $job->messageId ?? null : null;
    }

    /** Whether the releases that the job or its middleware ask for count as attempts. */
    public static function releasesCount(mixed $job): bool
    {
        return ! is_object($job) || ! (self::chosen($job)['NOCOUNT'] ?? $job->releaseUncounted ?? false);
    }

    /** @return array<string, mixed> by the option of DQ.PUSH */
    private static function chosen(object $job): array
    {
        return isset($job->dqOptions) && is_array($job->dqOptions) ? $job->dqOptions : [];
    }
}
