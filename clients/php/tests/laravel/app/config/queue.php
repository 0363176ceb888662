<?php

$own = json_decode(getenv('DQ_QUEUE') ?: '{}', true);
$redis = json_decode(getenv('DQ_REDIS_QUEUE') ?: '{}', true);

$connections = [
    'sync' => ['driver' => 'sync'],
    'redis' => array_merge(
        ['driver' => 'redis', 'connection' => 'default', 'queue' => 'default', 'retry_after' => 90],
        $redis
    ),
    'dq' => array_merge(['driver' => 'dq', 'connection' => 'default'], $own),
];
if (getenv('DQ_WITHOUT_CONNECTION')) {
    unset($connections['dq']);
}

return [
    'default' => getenv('QUEUE_CONNECTION') ?: 'dq',
    'connections' => $connections,
    'batching' => ['database' => 'sqlite', 'table' => 'job_batches'],
    'failed' => json_decode(getenv('DQ_FAILED') ?: 'null', true)
        ?? ['driver' => 'database-uuids', 'database' => 'sqlite', 'table' => 'failed_jobs'],
];
