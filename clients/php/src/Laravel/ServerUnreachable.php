<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Exception\DqException;
use Throwable;

/**
 * The server could not be reached, or did not answer. The cause is the previous exception and not part of the message,
 * because a worker of Laravel ends if it reads of a lost connection, and that of a dq connection goes on.
 */
final class ServerUnreachable extends DqException
{
    /** @param string $what the command that was not answered, or `to connect` */
    public static function at(string $address, string $what, Throwable $cause): self
    {
        $failed = $what === 'to connect' ? 'it accepts no connection' : "it did not answer {$what}";
        // What the server itself has answered, such as WRONGPASS.
        $failed .= preg_match('/\A[A-Z]{4,} /', $cause->getMessage()) ? " ({$cause->getMessage()})" : '';
        return new self("The server of dq at {$address} cannot be reached: {$failed}.", 0, $cause);
    }
}
