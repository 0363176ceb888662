<?php

/**
 * A proxy that loses one reply: php proxy.php PORT SERVER-PORT WORD
 * It passes bytes on in both directions. The reply to the first command that contains WORD is lost, and its connection
 * closed.
 */

declare(strict_types=1);

[, $port, $serverPort, $word] = $argv;
$listener = stream_socket_server("tcp://127.0.0.1:{$port}");
echo "ready\n";
$pairs = [];
$isCut = false;
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
        foreach ($pairs as $number => $pair) {
            if ($stream !== $pair['client'] && $stream !== $pair['server']) {
                continue;
            }
            $bytes = (string) fread($stream, 1 << 20);
            if ($stream === $pair['client'] && ! $isCut && str_contains($bytes, $word)) {
                $pairs[$number]['loses'] = $isCut = true;
            }
            if ($bytes === '' || ($stream === $pair['server'] && $pair['loses'])) {
                echo $bytes === '' ? "closed\n" : "cut\n";
                fclose($pair['client']);
                fclose($pair['server']);
                unset($pairs[$number]);
                break;
            }
            fwrite($stream === $pair['client'] ? $pair['server'] : $pair['client'], $bytes);
        }
    }
}
