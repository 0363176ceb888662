<?php

/**
 * Measures the queue connections `redis` and `dq` of Laravel with empty jobs, and prints a line of JSON for each. Of 20
 * delayed jobs the one that is the latest is the 99 of 100.
 *   php benches/workers/laravel.php
 * DQ_MODULE names the module and DQ_SERVER the server: each worker has a server of its own, as the tests have.
 */

declare(strict_types=1);

use Dq\Bench\Laravel\Scenario;
use Illuminate\Foundation\Application;

require __DIR__ . '/../../clients/php/tests/laravel/autoload.php';
require __DIR__ . '/../laravel/Scenario.php';

foreach (['redis', 'dq'] as $connection) {
    [$median, $worst] = explode(' ms, ', Scenario::measure($connection, 'lateness'));
    echo json_encode([
        'worker' => 'Laravel ' . Application::VERSION . ", connection {$connection}",
        'rate' => (float) Scenario::measure($connection, 'rate'),
        'p50' => (int) $median,
        'p99' => (int) $worst,
    ]), "\n";
}
