<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use PDO;

/** The tables that an application of Laravel has for batches and failed jobs. */
final class Database
{
    public static function make(string $path): void
    {
        $pdo = new PDO("sqlite:{$path}");
        $pdo->exec('PRAGMA journal_mode = WAL');
        $pdo->exec('CREATE TABLE failed_jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT UNIQUE NOT NULL, '
            . 'connection TEXT NOT NULL, queue TEXT NOT NULL, payload TEXT NOT NULL, exception TEXT NOT NULL, '
            . 'failed_at TEXT DEFAULT CURRENT_TIMESTAMP)');
        $pdo->exec('CREATE TABLE job_batches (id TEXT PRIMARY KEY, name TEXT NOT NULL, total_jobs INTEGER NOT NULL, '
            . 'pending_jobs INTEGER NOT NULL, failed_jobs INTEGER NOT NULL, failed_job_ids TEXT NOT NULL, '
            . 'options TEXT, cancelled_at INTEGER, created_at INTEGER NOT NULL, finished_at INTEGER)');
    }
}
