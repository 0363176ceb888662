<?php

declare(strict_types=1);

namespace App;

/** The file in which jobs write what they do: a line each, the time in ms before it. */
final class Journal
{
    public static function path(): string
    {
        return getenv('DQ_APP') . '/journal';
    }

    public static function write(string $line): void
    {
        $time = (int) (microtime(true) * 1000);
        file_put_contents(self::path(), "{$time} {$line}\n", FILE_APPEND | LOCK_EX);
    }
}
