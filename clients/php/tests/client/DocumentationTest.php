<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

/** The programs of the pages, as they stand there. */
final class DocumentationTest extends TestCase
{
    private const PAGE = __DIR__ . '/../../without-framework.md';
    private const CLIENTS = __DIR__ . '/../../../../docs/clients.md';

    public function testTheFiveMinutesWork(): void
    {
        $server = new TestServer();
        [$worker, $shop] = self::blocks(self::PAGE);
        $output = TestServer::makeDirectory() . '/output';
        $running = $this->start($this->program($worker, $server), $output);
        $this->assertRuns($this->program($shop, $server));
        $said = static fn (): array => array_filter(file($output), static fn (string $line) => $line[0] === 'm');
        self::eventually('all are sent', static fn (): bool => count($said()) === 3);
        $mails = array_values($said());
        sort($mails);
        $names = ['ann', 'ben', 'cid'];
        $this->assertSame(array_map(static fn (string $name): string => "mail to $name@example.org\n", $names), $mails);
        posix_kill(self::pid($running), SIGTERM);
        self::eventually('it stops', static fn (): bool => !proc_get_status($running)['running']);
        $this->assertStringNotContainsString('Deprecated', file_get_contents($output));
    }

    public function testTheOtherProgramsRun(): void
    {
        $server = new TestServer();
        [, , $pushing, $handler, $middleware] = self::blocks(self::PAGE);
        $shows = "\nprint_r(\$client->info('orders'));";
        $said = $this->assertRuns($this->program("require 'vendor/autoload.php';\n$pushing$shows", $server));
        $this->assertMatchesRegularExpression('/\[ready\] => 3\s/', $said);
        $this->assertMatchesRegularExpression('/\[cancelled\] => 1\s/', $said);
        $text = "require 'vendor/autoload.php';\n$handler\n$middleware\nexit(\$worker->run());";
        $server->client()->purge('orders');
        $output = TestServer::makeDirectory() . '/output';
        $this->start($this->program($text, $server), $output);
        $payload = json_encode(['task' => 'add', 'a' => 2, 'b' => 3]);
        $this->assertSame('5', $server->client()->pushAndWait('tasks', $payload, 10));
        $headers = ['traceparent' => '00-1-2-01'];
        $this->assertSame('shipped 7', $server->client()->pushAndWait('orders', '7', 10, headers: $headers));
        $this->assertStringContainsString('its parent is 00-1-2-01', file_get_contents($output));
    }

    public function testTheProgramsForPhpredisAndPredisRunAndHideNoRefusal(): void
    {
        foreach (self::blocks(self::CLIENTS) as $text) {
            $server = new TestServer();
            $program = "<?php\nerror_reporting(E_ALL);\n" . str_replace('6379', (string) $server->port, $text);
            $this->assertStringContainsString('order-1001 order 1001 1', $this->assertRuns($program));
            $this->assertSame(1, $server->client()->info('orders:close')['acked']);
            foreach ([['maxPayload' => 3], ['maxLen' => 1]] as $settings) {
                $server->client()->call('FLUSHALL');
                $server->client()->create('orders:close', ...$settings);
                $server->client()->push('orders:close', 'x', delay: 60);
                [$code, $said] = $this->runProgram($program);
                $this->assertNotSame(0, $code, $said);
                $this->assertMatchesRegularExpression('/TOOLARGE|QUEUEFULL/', $said);
            }
            $server->client()->call('FLUSHALL');
            $server->client()->call('SET', 'orders:close', 'x');
            [$code, $said] = $this->runProgram($program);
            $this->assertStringContainsString('WRONGTYPE', $said);
        }
    }

    private function program(string $text, TestServer $server): string
    {
        $load = var_export(realpath(__DIR__ . '/../../autoload.php'), true);
        $text = str_replace(["'vendor/autoload.php'", 'localhost'], [$load, '127.0.0.1'], $text);
        return "<?php\nerror_reporting(E_ALL);\n" . str_replace('6379', (string) $server->port, $text);
    }

    private function assertRuns(string $program): string
    {
        [$code, $said] = $this->runProgram($program);
        $this->assertSame(0, $code, $said);
        $this->assertStringNotContainsString('Deprecated', $said);
        return $said;
    }

    /** @return array{int, string} the exit code, and what it wrote */
    private function runProgram(string $program): array
    {
        $file = TestServer::makeDirectory() . '/program.php';
        file_put_contents($file, $program);
        exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg($file) . ' 2>&1', $lines, $code);
        return [$code, implode("\n", $lines) . "\n"];
    }

    /** @return list<string> */
    private static function blocks(string $page): array
    {
        preg_match_all('/^```php\n(.*?)^```/ms', file_get_contents($page), $found);
        return $found[1];
    }
}
