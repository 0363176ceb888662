<?php

return [
    'default' => 'file',
    'prefix' => 'cache',
    'stores' => ['file' => ['driver' => 'file', 'path' => getenv('DQ_APP') . '/storage/framework/cache/data']],
];
