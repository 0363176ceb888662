<?php

return [
    'default' => 'sqlite',
    'connections' => [
        'sqlite' => [
            'driver' => 'sqlite',
            'database' => getenv('DQ_APP') . '/database.sqlite',
            'prefix' => '',
            'busy_timeout' => 10000,
        ],
    ],
    'migrations' => 'migrations',
    'redis' => json_decode(getenv('DQ_REDIS') ?: '{}', true),
];
