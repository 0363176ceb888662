<?php

declare(strict_types=1);

namespace App;

use Dq\Laravel\Options;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Notifications\Notification;

/** A notification that is queued. */
final class ShippedNotification extends Notification implements ShouldQueue
{
    use Options;
    use Queueable;

    public function __construct(public string $order)
    {
    }

    /** @return list<class-string> */
    public function via(mixed $notifiable): array
    {
        return [JournalChannel::class];
    }
}
