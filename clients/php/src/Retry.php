<?php

declare(strict_types=1);

namespace Dq;

/** Thrown by a handler whose message is to be delivered again after some time. The attempt counts. */
class Retry extends \RuntimeException
{
    /**
     * @param string         $message why, for the log and for the error of the message
     * @param float|int|null $after   after how many seconds; null: the backoff of the queue applies
     */
    public function __construct(string $message = 'retry', public readonly float|int|null $after = null)
    {
        parent::__construct($message);
    }
}
