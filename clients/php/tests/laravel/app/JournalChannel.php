<?php

declare(strict_types=1);

namespace App;

use Illuminate\Notifications\Notification;

/** A channel of notifications that writes them into the journal. */
final class JournalChannel
{
    public function send(mixed $notifiable, Notification $notification): void
    {
        Journal::write("notification {$notification->order}");
    }
}
