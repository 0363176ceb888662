<?php

declare(strict_types=1);

namespace App;

use Dq\Laravel\Options;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Mail\Mailable;

/** A mail that is queued. */
final class ShippedMail extends Mailable implements ShouldQueue
{
    use Options;
    use Queueable;

    public function __construct(public string $order)
    {
    }

    public function build(): static
    {
        return $this->subject("Order {$this->order}")->view('shipped');
    }
}
