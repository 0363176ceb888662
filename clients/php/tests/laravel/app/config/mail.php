<?php

return [
    'default' => 'log',
    'mailers' => ['log' => ['transport' => 'log', 'channel' => null]],
    'from' => ['address' => 'shop@example.org', 'name' => 'Shop'],
];
