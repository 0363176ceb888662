<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use Dq\Client;
use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;
use Dq\Keeper;
use Dq\Keeper\Route;
use Dq\Keeper\Servers;
use Dq\Server;

/** The process that keeps leases, and what becomes of messages when it or its worker is killed. */
final class KeeperTest extends TestCase
{
    /** Of the messages, in seconds: half of it is enough for a busy machine to extend it. */
    private const LEASE = 2.0;

    private TestServer $server;
    private Client $client;
    /** @var list<callable> drop what this process holds */
    private array $held = [];

    protected function setUp(): void
    {
        parent::setUp();
        $this->server = new TestServer();
        $this->client = $this->server->client();
        $this->client->create('q', backoff: [0, 0]);
        $this->client->push('q', 'x', id: 'm');
    }

    protected function tearDown(): void
    {
        array_map(static fn (callable $drop) => $drop(), $this->held);
        parent::tearDown();
    }

    public function testALeaseIsKeptWhileTheProcessIsBusy(): void
    {
        $keeper = new Keeper(Server::fromUrl($this->server->url()));
        $this->hold($keeper, $this->client);
        self::beBusyFor(2.5 * self::LEASE);
        $this->assertSame(1, $this->client->info('q')['delivered']);
        $this->assertSame('inflight', $this->client->get('q', 'm')['state']);
        $this->assertFalse($keeper->isLost($this->client->get('q', 'm')['receipt']));
    }

    public function testWhatIsDroppedIsNotKept(): void
    {
        $keeper = new Keeper(Server::fromUrl($this->server->url()));
        $keeper->drop($this->hold($keeper, $this->client));
        self::eventually('its lease is over', fn () => $this->client->get('q', 'm')['state'] === 'ready');
        $this->assertSame(0, $this->client->info('q')['nacked']);
    }

    public function testAPopThatIsGivenUpTakesNothingAlthoughTheKeeperHasACopyOfItsConnection(): void
    {
        $impatient = new Client($this->server->url() . '?timeout=0.3');
        $this->hold(new Keeper(Server::fromUrl($this->server->url())), $impatient);
        try {
            $impatient->call('DQ.POP', 'q', 'BLOCK', '60000');
            $this->fail('it has an answer');
        } catch (ConnectionLost) {
            $blocked = fn (): string => $this->client->call('INFO', 'clients');
            self::eventually('the pop ends', static fn (): bool => str_contains($blocked(), "blocked_clients:0\r\n"));
        }
    }

    public function testAForkThatClosesItsCopyOfAConnectionDoesNotEndIt(): void
    {
        $id = $this->client->call('CLIENT', 'ID');
        $child = pcntl_fork();
        if ($child === 0) {
            $this->client->close();
            posix_kill(getmypid(), SIGKILL);
        }
        pcntl_waitpid($child, $status);
        $this->assertSame($id, $this->client->call('CLIENT', 'ID'));
    }

    public function testALossIsNoticed(): void
    {
        $keeper = new Keeper(Server::fromUrl($this->server->url()));
        $receipt = $this->hold($keeper, $this->client);
        $this->client->cancel('q', 'm');
        self::eventually('it is noticed', static fn (): bool => $keeper->isLost($receipt));
    }

    public function testAMessageOfAWorkerThatWasKilledComesBackAtOnce(): void
    {
        $worker = $this->startWorker();
        $this->kill(self::pid($worker));
        $message = self::eventually('it is back', fn () => $this->messageIf('ready'), 1);
        $this->assertSame(['the worker died', 1], [$message['error'], $message['attempt']]);
        self::eventually('its keeper has ended', static fn () => self::keepersOf(self::pid($worker)) === [], 5);
    }

    public function testAForkOfTheWorkerDoesNotHideItsDeath(): void
    {
        $worker = $this->startWorker('if (pcntl_fork() === 0) { sleep(6); posix_kill(getmypid(), SIGKILL); }');
        $this->kill(self::pid($worker));
        $message = self::eventually('it is back', fn () => $this->messageIf('ready'), 5);
        $this->assertSame('the worker died', $message['error']);
    }

    public function testAKeeperThatWasKilledIsReplacedInTime(): void
    {
        $worker = $this->startWorker();
        [$first] = self::keepersOf(self::pid($worker));
        $this->kill($first);
        $isAnother = static fn (): bool => !in_array(self::keepersOf(self::pid($worker)), [[], [$first]], true);
        self::eventually('there is another one', $isAnother, 1);
        self::beBusyFor(2.5 * self::LEASE);
        $this->assertSame(1, $this->client->info('q')['delivered']);
        $this->assertSame('inflight', $this->client->get('q', 'm')['state']);
    }

    public function testAMessageComesBackAfterItsLeaseIfBothWereKilled(): void
    {
        $worker = $this->startWorker();
        [$keeper] = self::keepersOf(self::pid($worker));
        $this->kill(self::pid($worker));
        $this->kill($keeper);
        self::eventually('it is back', fn () => $this->messageIf('ready'));
    }

    public function testNoKeeperIsLeftIfTheServerIsAwayAtTheEndOfItsWorker(): void
    {
        $worker = $this->startWorker();
        $this->server->freezeFor(8);
        $this->kill(self::pid($worker));
        self::eventually('its keeper has ended', static fn () => self::keepersOf(self::pid($worker)) === [], 5);
    }

    public function testItReachesServersOfEveryKind(): void
    {
        [$server, $tls, $socket] = TestServer::withTls();
        $admin = new Client("redis://:secret@127.0.0.1:$server->port");
        $admin->call('ACL', 'SETUSER', 'ann', 'on', '>p@ss', '~*', '&*', '+@all');
        $urls = [$socket, $tls, "redis://ann:p%40ss@127.0.0.1:$server->port/2"];
        foreach ($urls as $url) {
            $client = new Client($url);
            $client->push('q', 'x', id: 'm');
            $keeper = new Keeper(Server::fromUrl($url));
            $this->hold($keeper, $client);
            self::beBusyFor(1.5 * self::LEASE);
            $this->assertSame('inflight', $client->get('q', 'm')['state'], $url);
            $this->assertSame(1, $client->info('q')['delivered'], $url);
        }
    }

    public function testWhatANodeOfAClusterSaysIsFollowed(): void
    {
        [$first, $second] = [TestServer::freePort(), TestServer::freePort()];
        $this->startNode($first, "-ASK 1 127.0.0.1:$second\\r\\n", "-MOVED 1 :$second\\r\\n", '-READONLY x\\r\\n');
        $this->startNode($second, '+OK\\r\\n', ':1\\r\\n', ':2\\r\\n', ':3\\r\\n', '-CLUSTERDOWN x\\r\\n');
        $route = new Route(Servers::cluster([new Server('127.0.0.1', $first)]));
        $ask = static fn (): mixed => $route->call('q', ['DQ.EXTEND', 'q', 'm#1']);
        $this->assertSame([1, 2, 3], [$ask(), $ask(), $ask()], 'ASK is for one command, MOVED for all that follow');
        foreach (['CLUSTERDOWN', 'READONLY'] as $kind) {
            try {
                $ask();
                $this->fail('there is an answer');
            } catch (ServerError $error) {
                $this->assertSame($kind, $error->kind, 'after an error it begins with the known nodes again');
            }
        }
    }

    /** Starts what answers commands on one connection, each with the next of these replies. */
    private function startNode(int $port, string ...$replies): void
    {
        $list = '"' . implode('", "', $replies) . '"';
        $this->start("\$server = stream_socket_server('tcp://127.0.0.1:$port');
            do {
                \$one = stream_socket_accept(\$server, 60);
            } while (fread(\$one, 1000) === '');
            foreach ([$list] as \$reply) {
                fwrite(\$one, \$reply);
                fread(\$one, 1000);
            }");
        self::eventually('it listens', static fn (): bool => @fsockopen('127.0.0.1', $port) !== false);
    }

    private function hold(Keeper $keeper, Client $client): string
    {
        [$message] = $client->pop('q', lease: self::LEASE);
        $keeper->hold('q', $message->receipt, self::LEASE);
        $this->held[] = static fn () => $keeper->drop($message->receipt);
        return $message->receipt;
    }

    /**
     * Starts a worker that takes the message and is busy with it.
     *
     * @return resource of proc_open
     */
    private function startWorker(string $code = '')
    {
        [$url, $lease] = [$this->server->url(), self::LEASE];
        $worker = $this->start(<<<PHP
            \$client = new Dq\Client('$url');
            [\$message] = \$client->pop('q', lease: $lease);
            \$keeper = new Dq\Keeper(Dq\Server::fromUrl('$url'));
            \$keeper->hold('q', \$message->receipt, $lease);
            $code
            for (\$end = microtime(true) + 60; microtime(true) < \$end;);
            PHP);
        self::eventually('it is taken', fn () => $this->messageIf('inflight'));
        self::eventually('it has a keeper', static fn () => self::keepersOf(self::pid($worker)));
        usleep(200_000); // What it holds arrives at the keeper.
        return $worker;
    }

    /** @return array<string, mixed>|null */
    private function messageIf(string $state): ?array
    {
        $message = $this->client->get('q', 'm');
        return $message['state'] === $state ? $message : null;
    }

    private function kill(int $process): void
    {
        posix_kill($process, SIGKILL);
    }

    private static function beBusyFor(float $seconds): void
    {
        $end = microtime(true) + $seconds;
        while (microtime(true) < $end) {
            continue;
        }
    }
}
