<?php

declare(strict_types=1);

namespace Dq\Worker;

/** Pauses that grow. Workers that lost their server together do not all come back together. */
final class Backoff
{
    /** In seconds. Two seconds after the server, everybody is to be back. */
    private const FIRST = 0.05;
    private const LONGEST = 1.0;

    private float $next = self::FIRST;

    /** Returns the next pause in seconds. */
    public function next(): float
    {
        $pause = $this->next * random_int(750, 1000) / 1000;
        $this->next = min(self::LONGEST, $this->next * 2);
        return $pause;
    }

    public function reset(): void
    {
        $this->next = self::FIRST;
    }
}
