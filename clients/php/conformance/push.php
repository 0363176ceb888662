<?php

/*
 * The producer that the conformance suite drives: reads a line for each message, and prints its id.
 */

declare(strict_types=1);

require __DIR__ . '/program.php';

use Dq\Client;
use Dq\Exception\DqException;

$client = new Client(options()['url'][0]);
while (($line = fgets(STDIN)) !== false) {
    $asked = parsed($line);
    $options = array_intersect_key($asked, array_flip(['id', 'priority', 'group', 'headers']));
    if (isset($asked['delay'])) {
        $options['delay'] = $asked['delay'] / 1000;
    }
    try {
        echo json(['id' => $client->push($asked['queue'], $asked['payload'], ...$options)]), "\n";
    } catch (DqException $error) {
        echo json(['error' => substr(strrchr(get_class($error), '\\'), 1)]), "\n";
    }
}
