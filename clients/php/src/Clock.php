<?php

declare(strict_types=1);

namespace Dq;

/** A clock that nobody sets. */
final class Clock
{
    /** Returns a time in seconds that only differences of are of use. */
    public static function now(): float
    {
        return hrtime(true) / 1_000_000_000;
    }
}
