<?php

declare(strict_types=1);

namespace Dq\Worker;

/** A command that was sent and is not answered yet. */
final class Asked
{
    /**
     * @param callable(mixed): void $then     what is called with the reply
     * @param float                 $deadline when the reply is late, by Dq\Clock
     */
    public function __construct(public readonly mixed $then, public readonly float $deadline)
    {
    }
}
