<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The server could not be reached, or its reply was lost. */
final class ConnectionLost extends DqException
{
    /**
     * @param bool $mayHaveRun whether the server may have carried the command out
     */
    public function __construct(string $message, public readonly bool $mayHaveRun, ?\Throwable $previous = null)
    {
        parent::__construct($message, 0, $previous);
    }

    /** Returns the exception for a server at an address that cannot be reached. */
    public static function at(string $address, string $cause, bool $mayHaveRun, ?\Throwable $previous = null): self
    {
        return new self("the server at $address cannot be reached: $cause", $mayHaveRun, $previous);
    }
}
