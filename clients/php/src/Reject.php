<?php

declare(strict_types=1);

namespace Dq;

/** Thrown by a handler whose message can never succeed: the message is dead at once. */
class Reject extends \RuntimeException
{
}
