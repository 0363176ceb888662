<?php

/*
 * The worker that the conformance suite drives.
 */

declare(strict_types=1);

require __DIR__ . '/program.php';

use Dq\Message;
use Dq\Reject;
use Dq\Retry;
use Dq\Worker;

/** Does what the payload of a message asks for. */
function act(Message $message): mixed
{
    say('start', [
        'queue' => $message->queue,
        'id' => $message->id,
        'attempt' => $message->attempt,
        'headers' => $message->headers,
        'checkpoint' => $message->checkpoint,
        'at' => at(),
    ]);
    $asked = parsed($message->payload);
    $text = $asked['text'] ?? '';
    $end = microtime(true) + ($asked['ms'] ?? 0) / 1000;
    switch ($asked['do']) {
        case 'ok':
            return null;
        case 'save':
            usleep(($asked['ms'] ?? 0) * 1000);
            $message->save($text);
            usleep(($asked['ms'] ?? 0) * 1000);
            // It fails as that does.
        case 'fail':
            return $message->attempt <= ($asked['times'] ?? PHP_INT_MAX) ? throw new RuntimeException($text) : null;
        case 'reject':
            throw new Reject($text);
        case 'retry':
            throw new Retry($text, after($asked['after'] ?? null));
        case 'result':
            return $asked['result'];
        case 'no-result':
            return NAN;
        case 'hang':
            while (($left = $end - microtime(true)) > 0) {
                usleep((int) min(1_000_000, $left * 1_000_000));
            }
            return null;
        case 'spin':
            while (microtime(true) < $end) {
                continue;
            }
            return null;
        case 'exit':
            posix_kill(posix_getppid(), SIGKILL);
            posix_kill(getmypid(), SIGKILL);
    }
    throw new RuntimeException("unknown: {$asked['do']}");
}

/** Returns the time of a retry in seconds. What is no number is passed as it is. */
function after(mixed $after): mixed
{
    $after = ['NaN' => NAN, 'Infinity' => INF][is_string($after) ? $after : ''] ?? $after;
    return is_int($after) || is_float($after) ? $after / 1000 : $after;
}

/** Works on a kind of work by its name, as the README recommends. */
function task(Message $message): mixed
{
    $task = $message->json()['task'] ?? throw new UnexpectedValueException('the payload is no JSON object with a task');
    return match ($task) {
        'nothing' => null,
        default => throw new UnexpectedValueException("unknown task $task"),
    };
}

function hear(string $event, ?Message $message, ?string $reason): void
{
    match ($event) {
        'ready', 'stopped' => say($event),
        'lost' => say('lost', ['id' => $message->id, 'reason' => $reason, 'at' => at()]),
        'ended' => say('end', ['id' => $message->id, 'how' => 'lost', 'at' => at()]),
        default => say('end', ['id' => $message->id, 'how' => $event, 'at' => at()]),
    };
    $trouble = getenv('DQ_HOOK');
    if ($trouble === 'fail') {
        throw new RuntimeException('the hook fails');
    }
    if ($trouble === 'block' && $event === 'fail') {
        sleep(3);
    }
}

$options = options();
$seconds = static fn (string $name): ?float => isset($options[$name]) ? (int) $options[$name][0] / 1000 : null;
$worker = new Worker(
    $options['url'][0],
    lease: $seconds('lease'),
    grace: $seconds('grace') ?? 30.0,
    timeLimit: $seconds('time-limit'),
    name: $options['name'][0] ?? 'worker',
);
$worker->on(hear(...));
foreach ($options['queue'] as $queue) {
    [$name, $processes] = preg_match('/\A(.*)=(\d+)\z/s', $queue, $found) ? [$found[1], (int) $found[2]] : [$queue, 8];
    $handler = $name === 'tasks' ? task(...) : act(...);
    if ($name === $queue) {
        $worker->consume($name, $handler);
    } else {
        $worker->consume($name, $handler, $processes);
    }
}
exit($worker->run());
