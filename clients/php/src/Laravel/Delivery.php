<?php

declare(strict_types=1);

namespace Dq\Laravel;

/** A message as it was delivered to this worker. */
final class Delivery
{
    /**
     * @param string $queue the name that Laravel knows
     * @param string $key the key on the server
     * @param int $attempt 1 on the first delivery
     */
    public function __construct(
        public readonly string $queue,
        public readonly string $key,
        public readonly string $id,
        public readonly string $payload,
        public readonly int $attempt,
        public readonly string $receipt
    ) {
    }
}
