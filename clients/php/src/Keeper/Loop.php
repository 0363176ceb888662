<?php

declare(strict_types=1);

namespace Dq\Keeper;

use Dq\Clock;
use Dq\Exception\DqException;

/**
 * What bin/dq-keeper does: it hears through a pipe what its worker holds, and extends each lease at half time. When the
 * pipe ends, or the worker does, it gives back what is held.
 */
final class Loop
{
    /** How long one command may take, in seconds: the keeper has to be gone five seconds after its worker. */
    private const TIMEOUT = 1.0;
    /** For how long it tries to give back what was held, in seconds. */
    private const LAST_WORDS = 2.0;
    /** How often it looks whether the worker is there: a fork of it may hold the pipe open. */
    private const LOOK = 0.5;
    private const LONGEST_PAUSE = 1.0;

    private ?Route $route = null;
    /** @var array<string, Hold> by receipt */
    private array $held = [];
    private string $heard = '';
    private ?string $workerStart;

    /**
     * @param resource $input   what the worker says
     * @param resource $output  where lost messages are reported
     * @param int      $worker  its process
     */
    public function __construct(private $input, private $output, private readonly int $worker)
    {
        $this->workerStart = $this->startOfWorker();
    }

    public function run(): void
    {
        stream_set_blocking($this->input, false);
        while ($this->listen()) {
            foreach ($this->held as $hold) {
                if ($hold->next <= Clock::now()) {
                    $this->extend($hold);
                }
            }
        }
        $this->giveBack();
    }

    /** Waits until there is something to do. Returns whether the worker is there. */
    private function listen(): bool
    {
        $next = min([Clock::now() + self::LOOK, ...array_map(static fn (Hold $h): float => $h->next, $this->held)]);
        $left = max(0.0, $next - Clock::now());
        $read = [$this->input];
        $write = $except = null;
        if (@stream_select($read, $write, $except, 0, (int) ($left * 1_000_000))) {
            $bytes = fread($this->input, 65536);
            if (($bytes === '' || $bytes === false) && feof($this->input)) {
                return false;
            }
            $this->hear((string) $bytes);
        }
        return $this->startOfWorker() === $this->workerStart;
    }

    private function hear(string $bytes): void
    {
        $this->heard .= $bytes;
        while (($end = strpos($this->heard, "\n")) !== false) {
            $words = explode(' ', substr($this->heard, 0, $end));
            $this->heard = substr($this->heard, $end + 1);
            if ($words[0] === 'servers') {
                $servers = json_decode(base64_decode($words[1]), true);
                $this->route = new Route(Servers::fromArray($servers, self::TIMEOUT));
                continue;
            }
            $receipt = (string) base64_decode($words[1]);
            if ($words[0] === 'hold') {
                $next = Clock::now() + (int) $words[4] / 1000;
                $this->held[$receipt] = new Hold((string) base64_decode($words[2]), $receipt, (int) $words[3], $next);
            } else {
                unset($this->held[$receipt]);
            }
        }
    }

    private function extend(Hold $hold): void
    {
        try {
            $words = ['DQ.EXTEND', $hold->key, $hold->receipt, 'LEASE', (string) $hold->lease];
            $sent = Clock::now();
            $end = $this->route->call($hold->key, $words);
        } catch (DqException $error) {
            $hold->next = Clock::now() + min(self::LONGEST_PAUSE, $hold->lease / 10_000);
            if (!$hold->isInTrouble) {
                $hold->isInTrouble = true;
                $this->log($hold, "its lease cannot be extended: {$error->getMessage()}");
            }
            return;
        }
        if ($end === null) {
            unset($this->held[$hold->receipt]);
            $this->log($hold, 'lost: another worker may have it');
            @fwrite($this->output, base64_encode($hold->receipt) . "\n");
            return;
        }
        $hold->next = $sent + $hold->lease / 2000;
        $hold->isInTrouble = false;
    }

    private function giveBack(): void
    {
        $end = Clock::now() + self::LAST_WORDS;
        while ($this->held !== [] && Clock::now() < $end) {
            foreach ($this->held as $receipt => $hold) {
                try {
                    $words = ['DQ.NACK', $hold->key, $hold->receipt, 'ERROR', 'the worker died'];
                    $this->route->call($hold->key, $words);
                    unset($this->held[$receipt]);
                } catch (DqException) {
                    usleep(100_000);
                }
            }
        }
        foreach ($this->held as $hold) {
            $this->log($hold, 'the worker died; it comes back when its lease is over, as the server cannot be reached');
        }
    }

    private function log(Hold $hold, string $text): void
    {
        $id = strstr($hold->receipt, '#', true);
        fwrite(STDERR, "dq: queue $hold->key: message $id: $text\n");
    }

    /** Returns when the worker was started, or null if it has ended. Without /proc only the pipe tells. */
    private function startOfWorker(): ?string
    {
        if (!is_dir('/proc/self')) {
            return '';
        }
        $line = (string) @file_get_contents("/proc/$this->worker/stat");
        // The name of the program, in parentheses, may have spaces.
        $fields = explode(' ', substr((string) strrchr($line, ')'), 2));
        return $fields[0] === '' || $fields[0] === 'Z' || $fields[0] === 'X' ? null : $fields[19];
    }
}
