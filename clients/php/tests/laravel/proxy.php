<?php

/**
 * A proxy that loses one reply: php proxy.php PORT SERVER-PORT WORD NUMBER
 * It passes bytes on in both directions. Of the commands that contain WORD, the reply to that of this number, counted
 * from 1, is lost, and its connection closed.
 */

declare(strict_types=1);

[, $port, $serverPort, $word, $number] = $argv;
$listener = stream_socket_server("tcp://127.0.0.1:{$port}");
echo "ready\n";
$pairs = [];
$seen = 0;
while (true) {
    $read = [$listener, ...array_merge(...array_map(fn (array $pair) => [$pair['client'], $pair['server']], $pairs))];
    $write = $except = null;
    stream_select($read, $write, $except, null);
    foreach ($read as $stream) {
        if ($stream === $listener) {
            $pairs[] = [
                'client' => stream_socket_accept($listener),
                'server' => stream_socket_client("tcp://127.0.0.1:{$serverPort}"),
                'loses' => false,
            ];
            continue;
        }
        foreach ($pairs as $index => $pair) {
            if ($stream !== $pair['client'] && $stream !== $pair['server']) {
                continue;
            }
            $bytes = (string) fread($stream, 1 << 20);
            if ($stream === $pair['client'] && str_contains($bytes, $word)) {
                $seen++;
                $pairs[$index]['loses'] = $seen === (int) $number;
            }
            if ($bytes === '' || ($stream === $pair['server'] && $pair['loses'])) {
                echo $bytes === '' ? "closed\n" : "cut\n";
                fclose($pair['client']);
                fclose($pair['server']);
                unset($pairs[$index]);
                break;
            }
            fwrite($stream === $pair['client'] ? $pair['server'] : $pair['client'], $bytes);
        }
    }
}
