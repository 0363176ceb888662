<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use RuntimeException;

/** A process whose output is in a file. */
final class Process
{
    /** @var resource */
    private $process;

    public readonly int $pid;

    private ?int $exitCode = null;

    /**
     * @param list<string> $command
     * @param array<string, string> $environment variables added to those of this process
     */
    public function __construct(array $command, private string $file, array $environment)
    {
        $output = ['file', $file, 'a'];
        $streams = [['file', '/dev/null', 'r'], $output, $output];
        $process = proc_open($command, $streams, $pipes, null, $environment + getenv());
        if ($process === false) {
            throw new RuntimeException("{$command[0]} does not start");
        }
        $this->process = $process;
        $this->pid = proc_get_status($process)['pid'];
    }

    public function isRunning(): bool
    {
        if ($this->exitCode !== null) {
            return false;
        }
        $status = proc_get_status($this->process);
        if (! $status['running']) {
            $this->exitCode = $status['exitcode'];
        }
        return $status['running'];
    }

    /** The exit code; -1 after a signal; null: it runs. */
    public function exitCode(): ?int
    {
        return $this->isRunning() ? null : $this->exitCode;
    }

    public function output(): string
    {
        return (string) @file_get_contents($this->file);
    }

    public function signal(int $signal): void
    {
        posix_kill($this->pid, $signal);
    }

    public function kill(): void
    {
        while ($this->isRunning()) {
            $this->signal(SIGKILL);
            usleep(1000);
        }
    }
}
