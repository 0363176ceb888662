<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use PHPUnit\Framework\TestCase as PhpUnitTestCase;

abstract class TestCase extends PhpUnitTestCase
{
    /** @var list<int> processes that are killed after the test */
    private array $processes = [];

    protected function setUp(): void
    {
        // What is deprecated, or only a notice, fails the test.
        set_error_handler(static function (int $code, string $text, string $file, int $line): bool {
            if ((error_reporting() & $code) === 0) {
                return false; // It was called with @.
            }
            throw new \ErrorException($text, 0, $code, $file, $line);
        });
    }

    protected function tearDown(): void
    {
        restore_error_handler();
        foreach ($this->processes as $process) {
            posix_kill($process, SIGKILL);
        }
    }

    /** Waits for a condition and returns its value. */
    public static function eventually(string $what, callable $condition, float $seconds = 60): mixed
    {
        $end = microtime(true) + $seconds * (float) (getenv('DQ_PATIENCE') ?: 1);
        while (true) {
            $value = $condition();
            if ($value) {
                self::assertTrue(true, $what);
                return $value;
            }
            if (microtime(true) > $end) {
                self::fail("not within $seconds s: $what");
            }
            usleep(10_000);
        }
    }

    /**
     * Runs code in a process of its own, which is killed after the test.
     *
     * @return resource of proc_open
     */
    protected function start(string $code, ?string $output = null)
    {
        $loading = "error_reporting(E_ALL);\nini_set('display_errors', 'stderr');\n"
            . 'require ' . var_export(__DIR__ . '/../../autoload.php', true) . ";\n";
        $file = TestServer::makeDirectory() . '/program.php';
        file_put_contents($file, str_contains($code, '<?php') ? $code : "<?php\n$loading$code");
        $to = ['file', $output ?? '/dev/null', 'a'];
        $process = proc_open([PHP_BINARY, $file], [['file', '/dev/null', 'r'], $to, $to], $pipes);
        $this->processes[] = proc_get_status($process)['pid'];
        return $process;
    }

    /** @param resource $process of proc_open */
    protected static function pid($process): int
    {
        return proc_get_status($process)['pid'];
    }

    /** Returns the keepers of a worker. */
    protected static function keepersOf(int $worker): array
    {
        $found = [];
        foreach (glob('/proc/[0-9]*/cmdline') as $file) {
            $words = explode("\0", rtrim((string) @file_get_contents($file), "\0"));
            $isKeeper = str_ends_with($words[count($words) - 2] ?? '', 'bin/dq-keeper');
            if ($isKeeper && end($words) === (string) $worker) {
                $found[] = (int) basename(dirname($file));
            }
        }
        return $found;
    }
}
