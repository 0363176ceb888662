<?php

declare(strict_types=1);

namespace App;

use Illuminate\Contracts\Queue\ShouldQueue;

/** A listener that is queued. */
final class TellCustomer implements ShouldQueue
{
    public function handle(OrderShipped $event): void
    {
        Journal::write("listener {$event->order}");
    }
}
