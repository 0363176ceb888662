<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use App\Jobs\Job;
use Illuminate\Support\Facades\Queue;
use InvalidArgumentException;

/** The Redis connections that Laravel knows. With each, a job runs longer than its lease, which its keeper extends. */
final class ConnectionsTest extends TestCase
{
    /** @var array<string, mixed> */
    private array $redis = [];

    protected function redisSettings(): array
    {
        return $this->redis ?: parent::redisSettings();
    }

    protected function queueSettings(): array
    {
        return ['block_for' => 1, 'lease' => 3];
    }

    public function testPredis(): void
    {
        $this->runsWith(['client' => 'predis', 'default' => $this->tcp()]);
    }

    public function testAUserWithAPassword(): void
    {
        $this->server->ask('ACL', 'SETUSER', 'worker', 'on', '>secret', '~*', '+@all');
        $this->server->ask('CONFIG', 'SET', 'requirepass', 'other');
        foreach (['phpredis', 'predis'] as $client) {
            if ($client === 'phpredis' && version_compare($this->app->version(), '9', '<')) {
                continue; // Laravel 8 gives phpredis no user.
            }
            $this->runsWith([
                'client' => $client,
                'default' => $this->tcp() + ['username' => 'worker', 'password' => 'secret'],
            ]);
        }
    }

    public function testAPasswordAlone(): void
    {
        $this->server->ask('CONFIG', 'SET', 'requirepass', 'secret');
        foreach (['phpredis', 'predis'] as $client) {
            $this->runsWith(['client' => $client, 'default' => $this->tcp() + ['password' => 'secret']]);
        }
    }

    public function testTheRightsOfTheReadmeAreEnough(): void
    {
        $readme = (string) file_get_contents(__DIR__ . '/../../README.md');
        preg_match('/few rights needs `(\+dq[^`]+)`/', $readme, $rights);
        $words = preg_split('/\s+/', $rights[1]);
        $this->server->ask('ACL', 'SETUSER', 'worker', 'on', '>secret', '~default', '~high', '-@all', ...$words);
        $this->redis = [
            'client' => 'predis',
            'default' => $this->tcp() + ['username' => 'worker', 'password' => 'secret'],
        ];
        $this->boot();
        $this->runsOne('--queue=high,default');
        $id = Queue::later(60, new Job('a'));
        $this->assertTrue(Queue::connection()->reschedule($id, 90));
        $this->assertSame('delayed', Queue::connection()->cancel($id));
        Queue::bulk([new Job('b', ['release-uncounted 9']), new Job('c', ['throw'])]);
        $this->workUntilEmpty();
        $this->artisan('queue:clear', ['--force' => true]);
        $this->assertSame(0, Queue::size());
        $this->assertStringNotContainsString('NOPERM', $this->log());
    }

    public function testAWrongPasswordIsNamed(): void
    {
        $this->server->ask('CONFIG', 'SET', 'requirepass', 'secret');
        $this->redis = ['client' => 'phpredis', 'default' => $this->tcp() + ['password' => 'wrong']];
        $this->restartWith(['push_timeout' => 0.1]);
        $this->expectExceptionMessage('WRONGPASS');
        Queue::push(new Job('a'));
    }

    public function testADatabaseOtherThanTheFirst(): void
    {
        foreach (['phpredis', 'predis'] as $client) {
            $this->runsWith(['client' => $client, 'default' => $this->tcp() + ['database' => 3]]);
        }
        $redis = $this->server->redis();
        $this->assertSame(0, $redis->dbSize());
        $redis->select(3);
        $this->assertSame(1, $redis->dbSize());
    }

    public function testAUrl(): void
    {
        $url = "redis://127.0.0.1:{$this->server->port}/2";
        $this->runsWith(['client' => 'phpredis', 'default' => ['url' => $url, 'database' => 0]]);
        $this->runsWith(['client' => 'predis', 'default' => $url]);
    }

    public function testAUnixSocket(): void
    {
        $path = "{$this->directory}/redis.sock";
        $this->server->stop();
        $this->server = TestServer::start(['--unixsocket', $path]);
        $this->runsWith(['client' => 'phpredis', 'default' => ['host' => $path, 'port' => 0]]);
        $this->runsWith(['client' => 'predis', 'default' => ['scheme' => 'unix', 'path' => $path]]);
    }

    public function testThePrefixOfAConnection(): void
    {
        foreach (['phpredis', 'predis'] as $client) {
            $this->runsWith(['client' => $client, 'default' => $this->tcp(), 'options' => ['prefix' => "{$client}:"]]);
            $this->assertSame(1, $this->server->redis()->exists("{$client}:default"));
        }
    }

    public function testTls(): void
    {
        $certificate = new Certificate($this->directory);
        $port = TestServer::freePort();
        $this->server->stop();
        $this->server = TestServer::start([
            '--tls-port', (string) $port, '--tls-auth-clients', 'no', '--tls-key-file', $certificate->key,
            '--tls-cert-file', $certificate->certificate, '--tls-ca-cert-file', $certificate->certificate,
        ]);
        $options = ['cafile' => $certificate->certificate, 'verify_peer' => true, 'verify_peer_name' => false];
        $server = ['scheme' => 'tls', 'host' => '127.0.0.1', 'port' => $port];
        $this->runsWith(['client' => 'phpredis', 'default' => $server + ['context' => ['stream' => $options]]]);
        $this->runsWith(['client' => 'predis', 'default' => $server + ['ssl' => $options]]);
    }

    public function testAWorkerFollowsTheSentinelsOfPredis(): void
    {
        $replica = TestServer::start(['--replicaof', "127.0.0.1 {$this->server->port}"]);
        $file = "{$this->directory}/sentinel.conf";
        file_put_contents($file, "sentinel monitor main 127.0.0.1 {$this->server->port} 1\n"
            . "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n");
        $sentinel = TestServer::sentinel($file);
        $options = ['replication' => 'sentinel', 'service' => 'main'];
        $settings = ['tcp://127.0.0.1:' . $sentinel->port . '?timeout=5', 'options' => $options];
        $this->redis = ['client' => 'predis', 'default' => $settings];
        $this->restartWith(['block_for' => 1, 'lease' => 9, 'push_timeout' => 60]);
        $worker = $this->work();
        Job::dispatch('a', ['sleep 12', 'lost']);
        $this->untilWritten('done a');
        $this->eventually('the Sentinel knows the replica', fn (): bool => str_contains(
            json_encode($sentinel->ask('SENTINEL', 'REPLICAS', 'main')),
            (string) $replica->port
        ));
        $this->server->down();
        Job::dispatch('b', ['sleep 12', 'lost']);
        $this->untilWritten('done b');
        $this->assertSame(['held a', 'held b'], $this->journal('held'));
        $this->assertTrue($worker->isRunning());
        $this->assertSame('master', $replica->redis()->role()[0]);
        $sentinel->stop();
        $replica->stop();
    }

    public function testWhatTheKeeperCannotReachIsNamedAtTheStart(): void
    {
        $nodes = ['tcp://127.0.0.1:1?role=master', 'tcp://127.0.0.1:2', 'options' => ['replication' => 'predis']];
        $unknown = [
            'replicas that are named' => ['client' => 'predis', 'default' => $nodes],
            'a driver of others' => ['client' => 'own', 'default' => ['sentinels' => ['127.0.0.1']]],
            'shards' => ['client' => 'predis', 'clusters' => ['default' => [$this->tcp()]], 'options' => []],
        ];
        foreach ($unknown as $what => $this->redis) {
            $this->boot();
            try {
                Queue::connection('dq');
                $this->fail("there is a keeper for {$what}");
            } catch (InvalidArgumentException $error) {
                $this->assertStringContainsString("Set 'keep' => 'none'", $error->getMessage());
            }
        }
    }

    public function testAClusterWhoseFirstNodeHasNoQueues(): void
    {
        $this->server->stop();
        $first = $this->startNode();
        $this->server = $this->startNode();
        $this->server->ask('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
        $this->server->ask('CLUSTER', 'MEET', '127.0.0.1', (string) $first->port, (string) $first->busPort);
        foreach ([$first, $this->server] as $node) {
            $this->eventually('the node knows who has the slots', fn (): bool => str_contains(
                (string) $node->ask('CLUSTER', 'INFO'),
                'cluster_state:ok'
            ));
            $node->ask('CONFIG', 'SET', 'requirepass', 'secret');
        }
        $nodes = [['host' => '127.0.0.1', 'port' => $first->port]];
        $logins = ['phpredis' => ['password' => 'secret'], 'predis' => ['parameters' => ['password' => 'secret']]];
        foreach ($logins as $client => $login) {
            $this->redis = [
                'client' => $client,
                'clusters' => ['default' => $nodes, 'options' => []],
                'options' => ['cluster' => 'redis'] + $login,
            ];
            $this->boot();
            $this->runsOne('--queue=high,default', 'sleep 4');
        }
        $first->stop();
    }

    private function startNode(): TestServer
    {
        $busPort = TestServer::freePort();
        $options = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--cluster-port'];
        $node = TestServer::start([...$options, (string) $busPort]);
        $node->busPort = $busPort;
        return $node;
    }

    /** @return array<string, mixed> */
    private function tcp(): array
    {
        return ['host' => '127.0.0.1', 'port' => $this->server->port];
    }

    /** @param array<string, mixed> $redis */
    private function runsWith(array $redis): void
    {
        $this->redis = $redis;
        $this->boot();
        $this->runsOne('--queue=default', 'sleep 4');
    }

    /** @param string $does before it looks whether it was lost */
    private function runsOne(string $queue, string $does = 'sleep 0'): void
    {
        $name = uniqid('job-');
        Job::dispatch($name, [$does, 'lost']);
        $worker = $this->work('--once', $queue);
        $this->untilWritten("done {$name}");
        $this->eventually('the worker ends', fn (): bool => ! $worker->isRunning());
        $this->assertContains("held {$name}", $this->journal());
        $this->assertSame([], $this->journal('lost'));
        $this->assertSame(0, Queue::size());
    }
}
