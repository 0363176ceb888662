<?php

/**
 * Compares the queue connections `redis` and `dq` of one version of Laravel, and prints the table that is in
 * clients/php/README.md.
 *   php benches/laravel/compare.php
 * DQ_MODULE names the module and DQ_SERVER the server. `scripts/fetch-languages.sh php-sid` prints a php that has
 * Laravel. Workers have the defaults of `queue:work`, if the row does not say otherwise. It takes about five minutes.
 */

declare(strict_types=1);

use Dq\Bench\Laravel\Scenario;
use Illuminate\Foundation\Application;

require __DIR__ . '/../../clients/php/tests/laravel/autoload.php';
require __DIR__ . '/Scenario.php';

/** What is measured, and by which method. */
const ROWS = [
    'a job delayed by 1 to 3 s begins late by: median, and worst of 20' => 'lateness',
    'of them began too early' => 'early',
    'a job that runs for three times `retry_after` or `lease` runs' => 'runsOfALongJob',
    'the job of a killed worker begins again after (`retry_after` 10 s, `lease` 10 s)' => 'afterAKill',
    'with `--queue=high,low` and `block_for` 5 a job in `low` begins after: worst of 5' => 'lessImportantQueue',
    'five jobs that are due in the same second run in the order' => 'order',
    'pushing 1,000 jobs with `Queue::bulk`' => 'bulk',
    'running 1,000 empty jobs in one worker' => 'throughput',
];

echo 'Laravel ', Application::VERSION, ', PHP ', PHP_VERSION, ', ', php_uname('s'), ' on ', php_uname('m'), "\n\n";
echo "| | `redis` | `dq` |\n| --- | --- | --- |\n";
foreach (ROWS as $what => $method) {
    $cells = array_map(fn (string $connection): string => Scenario::measure($connection, $method), ['redis', 'dq']);
    echo "| {$what} | ", implode(' | ', $cells), " |\n";
}
