<?php

/** Keeps a server busy with a script: php block.php PORT SECONDS */

declare(strict_types=1);

[, $port, $seconds] = $argv;
$redis = new Redis();
$redis->connect('127.0.0.1', (int) $port, 5, null, 0, 60);
echo "runs\n";
$redis->eval(<<<'LUA'
    local function now() local time = redis.call('TIME') return time[1] + time[2] / 1000000 end
    local begun = now()
    while now() < begun + tonumber(ARGV[1]) do end
    LUA, [$seconds], 0);
