<?php

$own = json_decode(getenv('DQ_QUEUE') ?: '{}', true);

return [
    'default' => getenv('QUEUE_CONNECTION') ?: 'dq',
    'connections' => [
        'sync' => ['driver' => 'sync'],
        'redis' => ['driver' => 'redis', 'connection' => 'default', 'queue' => 'default', 'retry_after' => 90],
        'dq' => array_merge(['driver' => 'dq', 'connection' => 'default', 'block_for' => 1], $own),
    ],
    'batching' => ['database' => 'sqlite', 'table' => 'job_batches'],
    'failed' => json_decode(getenv('DQ_FAILED') ?: 'null', true)
        ?? ['driver' => 'database-uuids', 'database' => 'sqlite', 'table' => 'failed_jobs'],
];
