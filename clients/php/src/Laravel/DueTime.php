<?php

declare(strict_types=1);

namespace Dq\Laravel;

use DateInterval;
use DateTimeInterface;
use Dq\Options as CommandOptions;
use Illuminate\Support\Carbon;

/**
 * The times that Laravel accepts, in the words of the commands: a time of day is a due time to the millisecond,
 * anything else counts from now by the clock of the server.
 */
final class DueTime
{
    /**
     * @param DateTimeInterface|DateInterval|int|float|string|null $delay seconds, if it is a number
     * @return list<string|int> the option `AT` or `DELAY`, or no option for null
     */
    public static function option(mixed $delay): array
    {
        if ($delay === null) {
            return [];
        }
        if ($delay instanceof DateTimeInterface) {
            return ['AT', CommandOptions::unixMs($delay)];
        }
        return ['DELAY', self::millisecondsFromNow($delay)];
    }

    /**
     * @param DateTimeInterface|DateInterval|int|float|string|null $delay seconds, if it is a number
     */
    public static function millisecondsFromNow(mixed $delay): int
    {
        if ($delay instanceof DateInterval) {
            $delay = Carbon::now()->add($delay);
        }
        if ($delay instanceof DateTimeInterface) {
            return max(0, intdiv((int) $delay->format('Uu') - (int) Carbon::now()->format('Uu') + 999, 1000));
        }
        return max(0, (int) round((float) $delay * 1000));
    }
}
