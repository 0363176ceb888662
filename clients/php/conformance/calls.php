<?php

/*
 * Calls each method of a client with all its options, for the conformance suite, which looks at what the server gets.
 */

declare(strict_types=1);

require __DIR__ . '/program.php';

use Dq\Client;
use Dq\Exception\DqException;

$client = new Client(options()['url'][0]);
$soon = new DateTimeImmutable('+1 hour');
$common = ['priority' => 1, 'retries' => 1, 'lease' => 5, 'group' => 'g', 'headers' => ['h' => '1']];
$each = $common + [
    'ttl' => 5000, 'replace' => true, 'later' => true, 'maxWait' => new DateInterval('PT5S'), 'retain' => 5,
    'batch' => 'b',
];
$client->push('q', 'x', ...$each, id: 'm', at: $soon);
$client->push('q', 'x', ...$each, id: 'm', delay: 5);
$client->pushMany('q', ['x'], ...$each, ids: ['n'], at: $soon);
$client->pushMany('q', ['x'], ...$each, ids: ['n'], delay: 5);
$past = ['attempt' => 2, 'error' => 'e', 'checkpoint' => 'c', 'dead' => true, 'reason' => 'retries'];
$client->push('q', 'x', ...$past);
$client->pushMany('q', ['x'], ...$past);
try {
    $client->pushAndWait('q', 'x', 0.001);
} catch (DqException) {
    // It takes longer.
}
$client->schedule('q', 's', 'x', ...$common, every: 60, offset: 1, at: $soon, until: $soon, times: 2, ttl: 5);
$client->schedule('q', 's', 'x', cron: '@daily', tz: 'UTC');
$client->follow('q', 'b', 'x', ...$common, id: 'f', delay: 5);
$client->batchInfo('q', 'b');
$client->cancelBatch('q', 'b');
$client->cancel('q', 'm');
$client->reschedule('q', 'n', at: $soon, priority: 1);
$client->reschedule('q', 'n', delay: 5);
$client->promote('q', count: 1, until: $soon);
$client->redrive('q', count: 1, delay: 5, older: 0, reason: 'expired');
$client->redrive('q', ['m']);
$client->get('q', 'm');
$client->peek('q', 'ready', 1, group: 'g');
$client->len('q', 'ready', group: 'g');
$client->info('q');
foreach (['in', 'out', 'all'] as $flow) {
    $client->pause('q', $flow, 5);
    $client->resume('q', $flow);
}
$client->pause('q', for: 5, group: 'g');
$client->resume('q', group: 'g');
$settings = [
    'lease' => 5, 'maxLease' => 60, 'delay' => 1, 'retries' => 1, 'backoff' => [1, 60], 'jitter' => 10, 'ttl' => 60,
    'maxLen' => 5, 'maxInflight' => 5, 'rate' => [5, 1], 'deadLen' => 5, 'deadTtl' => 60, 'retain' => 5, 'doneLen' => 5,
    'maxPayload' => 100, 'groupInflight' => 2, 'groupRate' => [5, 1], 'errors' => 2, 'groupOrder' => 'turn',
    'dedupe' => 5, 'forward' => ['STREAM', 'due', 'TRIM', 9], 'deadForward' => ['QUEUE', 'dead'],
];
$client->declare('q', ...$settings);
$client->create('q', ...$settings);
$client->alter('q', ...$settings);
$client->purge('q', ['ready'], count: 1, group: 'g', recurring: true, older: 0);
