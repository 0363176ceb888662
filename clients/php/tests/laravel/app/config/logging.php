<?php

return [
    'default' => 'single',
    'deprecations' => ['channel' => 'single', 'trace' => false],
    'channels' => ['single' => ['driver' => 'single', 'path' => getenv('DQ_APP') . '/laravel.log', 'level' => 'debug']],
];
