<?php

declare(strict_types=1);

namespace Dq;

/** The options of commands, as programs name them, and as the words of a command. */
final class Options
{
    /** Of a push, and of a message that follows a batch or recurs. */
    public const PUSH = [
        'id', 'delay', 'at', 'priority', 'retries', 'lease', 'ttl', 'replace', 'maxWait', 'later', 'retain', 'group',
        'batch', 'headers', 'attempt', 'error', 'checkpoint', 'dead', 'reason',
    ];
    public const SCHEDULE = [
        'every', 'offset', 'cron', 'tz', 'at', 'until', 'times', 'priority', 'retries', 'lease', 'ttl', 'group',
        'headers',
    ];
    public const FOLLOW = ['id', 'delay', 'priority', 'retries', 'lease', 'group', 'headers'];
    public const POP = ['count', 'min', 'linger', 'lease', 'block', 'as', 'noAck'];
    public const SETTINGS = [
        'lease', 'maxLease', 'delay', 'retries', 'backoff', 'jitter', 'ttl', 'maxLen', 'maxInflight', 'rate', 'deadLen',
        'deadTtl', 'retain', 'doneLen', 'maxPayload', 'groupInflight', 'groupRate', 'errors', 'groupOrder', 'dedupe',
        'forward', 'deadForward',
    ];

    /** The earliest point in time that commands accept, in Unix ms: smaller numbers look like seconds. */
    public const EARLIEST_MS = 100_000_000_000;

    private const DURATIONS = [
        'delay', 'lease', 'ttl', 'maxWait', 'retain', 'every', 'offset', 'linger', 'block', 'older', 'for', 'maxLease',
        'deadTtl', 'dedupe',
    ];
    private const INSTANTS = ['at', 'until'];
    private const FLAGS = ['replace', 'later', 'dead', 'noAck', 'noCount', 'recurring', 'sequence'];
    private const NUMBERS = [
        'priority', 'retries', 'attempt', 'times', 'count', 'min', 'jitter', 'maxLen', 'maxInflight', 'deadLen',
        'doneLen', 'maxPayload', 'groupInflight', 'errors',
    ];
    /** Each is a number and a time, or 0. */
    private const RATES = ['rate', 'groupRate'];
    /** Lists of words that are passed on. */
    private const WORDS = ['forward', 'deadForward'];

    /**
     * Returns the words of options. An option that is null is left out.
     *
     * @param array<string|int, mixed> $options
     * @param list<string>             $known
     *
     * @return list<string>
     *
     * @throws \InvalidArgumentException if the command does not have such an option, or the value is none
     */
    public static function words(array $options, array $known): array
    {
        $words = [];
        foreach ($options as $name => $value) {
            if (!in_array($name, $known, true)) {
                throw new \InvalidArgumentException("unknown option $name: there are " . implode(', ', $known));
            }
            if ($value !== null) {
                array_push($words, ...self::option($name, $value));
            }
        }
        return $words;
    }

    /**
     * Returns the milliseconds of a number of seconds or of an interval.
     */
    public static function milliseconds(string $name, mixed $duration): string
    {
        if ($duration instanceof \DateInterval) {
            $from = new \DateTimeImmutable('@0');
            $to = $from->add($duration);
            $duration = (float) $to->format('U.u');
        }
        if ((!is_int($duration) && !is_float($duration)) || !is_finite((float) $duration) || $duration < 0) {
            throw new \InvalidArgumentException("$name must be a number of seconds from 0, or an interval");
        }
        return sprintf('%.0F', round($duration * 1000));
    }

    /** Returns a point in time as commands take it: rounded up to the millisecond, so that nothing is early. */
    public static function unixMs(\DateTimeInterface $time): int
    {
        return max(self::EARLIEST_MS, intdiv((int) $time->format('Uu') + 999, 1000));
    }

    /** @return list<string> */
    private static function option(string $name, mixed $value): array
    {
        $word = strtoupper($name);
        return match (true) {
            in_array($name, self::DURATIONS, true) => [$word, self::milliseconds($name, $value)],
            in_array($name, self::INSTANTS, true) => [$word, self::instant($name, $value)],
            in_array($name, self::FLAGS, true) => self::flag($name, $value) ? [$word] : [],
            in_array($name, self::NUMBERS, true) => [$word, self::number($name, $value)],
            in_array($name, self::RATES, true) => [$word, ...self::rate($name, $value)],
            in_array($name, self::WORDS, true) => [$word, ...self::listed($name, $value)],
            $name === 'backoff' => [$word, ...self::backoff($value)],
            $name === 'headers' => self::headers($value),
            default => [$word, self::text($name, $value)],
        };
    }

    private static function instant(string $name, mixed $value): string
    {
        if (!$value instanceof \DateTimeInterface) {
            throw new \InvalidArgumentException("$name must be a time, a DateTimeInterface");
        }
        return (string) self::unixMs($value);
    }

    private static function flag(string $name, mixed $value): bool
    {
        return is_bool($value) ? $value : throw new \InvalidArgumentException("$name must be true or false");
    }

    private static function number(string $name, mixed $value): string
    {
        return is_int($value) ? (string) $value : throw new \InvalidArgumentException("$name must be an integer");
    }

    private static function text(string $name, mixed $value): string
    {
        $isText = is_string($value) || is_int($value) || $value instanceof \Stringable;
        return $isText ? (string) $value : throw new \InvalidArgumentException("$name must be a text");
    }

    /** @return list<string> */
    private static function rate(string $name, mixed $value): array
    {
        if ($value === 0) {
            return ['0', '0'];
        }
        if (!is_array($value) || count($value) !== 2 || !array_is_list($value)) {
            throw new \InvalidArgumentException("$name must be a number of messages and a time, such as [5, 1], or 0");
        }
        return [self::number($name, $value[0]), self::milliseconds($name, $value[1])];
    }

    /** @return list<string> */
    private static function backoff(mixed $value): array
    {
        if (!is_array($value) || count($value) !== 2 || !array_is_list($value)) {
            throw new \InvalidArgumentException('backoff must be the first and the longest pause, such as [1, 3600]');
        }
        return [self::milliseconds('backoff', $value[0]), self::milliseconds('backoff', $value[1])];
    }

    /** @return list<string> */
    private static function listed(string $name, mixed $value): array
    {
        if (!is_array($value) || $value === []) {
            throw new \InvalidArgumentException("$name must be a list of words, such as ['STREAM', 'target']");
        }
        return array_map(static fn (mixed $word): string => self::text($name, $word), array_values($value));
    }

    /** @return list<string> */
    private static function headers(mixed $value): array
    {
        if (!is_array($value)) {
            throw new \InvalidArgumentException('headers must be an array of names and values');
        }
        if ($value === []) {
            return [];
        }
        $words = ['HEADERS', (string) count($value)];
        foreach ($value as $name => $text) {
            array_push($words, (string) $name, self::text("the header $name", $text));
        }
        return $words;
    }
}
