<?php

declare(strict_types=1);

namespace App;

use Dq\Laravel\Options;
use Illuminate\Contracts\Queue\ShouldQueue;

/** A listener that is queued. */
final class TellCustomer implements ShouldQueue
{
    use Options;

    public int $priority = 5;

    public function handle(OrderShipped $event): void
    {
        Journal::write("listener {$event->order}");
    }
}
