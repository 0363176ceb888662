<?php

declare(strict_types=1);

namespace Dq\Keeper;

/** A message whose lease is kept. */
final class Hold
{
    public bool $isInTrouble = false;

    /**
     * @param int   $lease in ms
     * @param float $next  when it is extended, by Dq\Clock
     */
    public function __construct(
        public readonly string $key,
        public readonly string $receipt,
        public readonly int $lease,
        public float $next,
    ) {
    }
}
