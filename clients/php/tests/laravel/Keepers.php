<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

/** Finds the processes that keep leases. */
final class Keepers
{
    /** The keeper of a worker, or null. */
    public static function of(int $worker): ?int
    {
        foreach (glob('/proc/[0-9]*/cmdline') ?: [] as $file) {
            $words = explode("\0", rtrim((string) @file_get_contents($file), "\0"));
            $last = array_pop($words);
            if ($last === (string) $worker && str_ends_with((string) end($words), 'bin/dq-keeper')) {
                return (int) explode('/', $file)[2];
            }
        }
        return null;
    }
}
