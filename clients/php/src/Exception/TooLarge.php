<?php

declare(strict_types=1);

namespace Dq\Exception;

/** The payload is larger than the MAXPAYLOAD of the queue. */
final class TooLarge extends ServerError
{
}
