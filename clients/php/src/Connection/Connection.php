<?php

declare(strict_types=1);

namespace Dq\Connection;

use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;

/** A connection to the server that waits for the reply of each command. */
interface Connection
{
    /**
     * Sends a command and returns its reply: int, string, null, or a list of these, in which errors are ServerErrors.
     *
     * @param list<string> $words
     * @param float        $block for how many seconds the command itself may wait at the server
     *
     * @throws ServerError    if the server answers an error
     * @throws ConnectionLost if the reply does not arrive; the next command opens another connection
     */
    public function call(array $words, float $block = 0.0): mixed;

    /** Closes the connection. The next command opens another one. */
    public function close(): void;

    /** Returns where the server is, for people. */
    public function address(): string;

    /** Returns what this connection puts before each key. */
    public function prefix(): string;
}
