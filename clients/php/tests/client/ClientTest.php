<?php

declare(strict_types=1);

namespace Dq\Tests\Client;

use DateTimeImmutable;
use Dq\Client;
use Dq\Exception\ConnectionLost;
use Dq\Exception\DeadId;
use Dq\Exception\NoModule;
use Dq\Exception\QueueClosed;
use Dq\Exception\QueueFull;
use Dq\Exception\ServerError;
use Dq\Exception\TooLarge;
use Dq\Message;

/** The client, on each of its connections. */
final class ClientTest extends TestCase
{
    private static TestServer $server;

    public static function setUpBeforeClass(): void
    {
        self::$server = new TestServer();
    }

    /** Calls a test with a client on each connection. */
    private function onEach(callable $test): void
    {
        $port = self::$server->port;
        $url = self::$server->url();
        $clients = ['a URL' => new Client($url), 'RESP3' => new Client("$url?protocol=3")];
        if (extension_loaded('redis')) {
            $clients['phpredis'] = new Client(self::redis());
        }
        if (class_exists(\Predis\Client::class)) {
            $clients['Predis'] = new Client(new \Predis\Client(['port' => $port]));
        }
        $this->assertCount(4, $clients, 'the packages php-redis and php-predis are there');
        foreach ($clients as $client) {
            self::$server->client()->call('FLUSHALL');
            $test($client);
        }
    }

    private static function redis(): \Redis
    {
        $redis = new \Redis();
        $redis->connect('127.0.0.1', self::$server->port);
        return $redis;
    }

    public function testAMessageIsDeliveredWithAllThatWasPushed(): void
    {
        $this->onEach(function (Client $client): void {
            $headers = ['tenant' => 'ann', '7' => "\xff"];
            $id = $client->push('q', "\x00\r\n\xff", id: 'm', priority: 3, group: 'g', headers: $headers);
            [$message] = $client->pop('q', block: 1, as: 'me');
            $this->assertInstanceOf(Message::class, $message);
            $this->assertSame(['m', 'm', "\x00\r\n\xff", 1], [$id, $message->id, $message->payload, $message->attempt]);
            $this->assertSame([3, 'g', 'q'], [$message->priority, $message->group, $message->queue]);
            $this->assertEquals($headers, $message->headers);
            $this->assertSame(1, $client->ack('q', $message->receipt));
            $this->assertNull($client->get('q', 'm'));
        });
    }

    public function testADuplicateIsNull(): void
    {
        $this->onEach(function (Client $client): void {
            $this->assertSame('m', $client->push('q', 'x', id: 'm'));
            $this->assertNull($client->push('q', 'x', id: 'm'));
            $this->assertSame([null, 'n'], $client->pushMany('q', ['x', 'y'], ids: ['m', 'n']));
        });
    }

    public function testManyArePushedInOneStepAndTheDeadAreNamed(): void
    {
        $this->onEach(function (Client $client): void {
            $client->push('q', 'x', id: 'm', dead: true);
            [$refused, $id] = $client->pushMany('q', ['x', 'y'], ids: ['m', 'n']);
            $this->assertInstanceOf(DeadId::class, $refused);
            $this->assertSame('n', $id);
            $this->assertCount(3, array_unique($client->pushMany('q', ['1', '2', '3'])));
            $this->assertSame([4, 1], [$client->len('q'), $client->len('q', 'dead')]);
        });
    }

    public function testAnEmptyAnswerIsNoMessage(): void
    {
        $this->onEach(function (Client $client): void {
            $this->assertSame([], $client->pop('q'));
            $this->assertSame([], $client->pop('q', block: 0.01));
            $this->assertSame([], $client->popAny(['q', 'r']));
            $this->assertSame([0, []], $client->ackPop('q', ['m']));
            $this->assertSame([null, null], [$client->info('q'), $client->get('q', 'm')]);
            $this->assertSame([[], ['0', []]], [$client->peek('q'), $client->scan('q')]);
        });
    }

    public function testAPopMayWaitForLongerThanTheTimeoutOfTheConnection(): void
    {
        $patient = new Client(self::$server->url() . '?timeout=0.2');
        $this->assertSame([], $patient->pop('nothing', block: 0.5));
        $redis = self::redis();
        $redis->setOption(\Redis::OPT_READ_TIMEOUT, 0.2);
        $this->assertSame([], (new Client($redis))->pop('nothing', block: 0.5));
        $this->assertSame(0.2, (float) $redis->getOption(\Redis::OPT_READ_TIMEOUT), 'it is as it was');
        $predis = new \Predis\Client(['port' => self::$server->port, 'read_write_timeout' => 0.2]);
        $this->assertSame([], (new Client($predis))->pop('nothing', block: 0.5));
    }

    public function testAConnectionServesItsProgramAsBefore(): void
    {
        $redis = self::redis();
        (new Client($redis))->len('q');
        $this->assertSame([], $redis->brPop(['no list'], 1), 'it waits');
    }

    public function testOutcomesDoWhatTheirCommandsDo(): void
    {
        $this->onEach(function (Client $client): void {
            $client->push('q', 'x', id: 'm', retain: 60);
            $client->pop('q', lease: 5);
            $this->assertGreaterThan(microtime(true) * 1000 + 50_000, $client->extend('q', 'm', lease: 60));
            $this->assertNull($client->extend('q', 'n'));
            $this->assertNull($client->extendMany('q', ['m', 'n'])[1]);
            $this->assertSame('delayed', $client->nack('q', 'm', delay: 60, error: 'no oven'));
            $this->assertSame('no oven', $client->get('q', 'm')['error']);
            $this->assertTrue($client->reschedule('q', 'm', at: new DateTimeImmutable('-1 minute')));
            $client->pop('q');
            $this->assertTrue($client->complete('q', 'm', result: 'done'));
            $this->assertSame(['done', 'done'], [$client->get('q', 'm')['state'], $client->get('q', 'm')['result']]);
            $client->push('q', 'x', id: 'n');
            $this->assertSame(['ready', null], $client->cancel('q', 'n', 'o'));
        });
    }

    public function testWhatTheServerRefusesIsThrown(): void
    {
        $this->onEach(function (Client $client): void {
            $client->create('q', maxLen: 2, maxPayload: 3);
            $client->push('q', 'x', id: 'm');
            $client->bury('q', 'm');
            $client->call('SET', 'text', 'x');
            $this->assertThrows(TooLarge::class, fn () => $client->push('q', 'xxxx'));
            $this->assertThrows(DeadId::class, fn () => $client->push('q', 'x', id: 'm'));
            $client->pushMany('q', ['x', 'y']);
            $this->assertThrows(QueueFull::class, fn () => $client->push('q', 'x'));
            $client->pause('q', 'in');
            $this->assertThrows(QueueClosed::class, fn () => $client->push('q', 'x'));
            $error = $this->assertThrows(NoModule::class, fn () => $client->call('DQ.NOTHING', 'q', '4711'));
            $this->assertStringNotContainsString('4711', $error->getMessage());
            $error = $this->assertThrows(ServerError::class, fn () => $client->push('text', 'secret'));
            $this->assertSame('WRONGTYPE', $error->kind);
            $this->assertStringContainsString('DQ.PUSH text', $error->getMessage());
            $this->assertSame(['ready', 'x'], [$client->peek('q')[0]['state'], $client->peek('q')[0]['payload']]);
        });
    }

    public function testANodeOfAClusterSaysWhoHoldsTheQueue(): void
    {
        $error = ServerError::of('MOVED 11958 127.0.0.1:7001')->concerning('DQ.PUSH q');
        $this->assertStringContainsString('another node holds the queue: use its address, 127.0.0.1:7001', "$error");
        $this->assertSame('MOVED', $error->kind);
    }

    public function testAPushWhoseReplyWasLostIsMadeOnce(): void
    {
        $port = self::$server->port;
        $redis = self::redis();
        $redis->setOption(\Redis::OPT_READ_TIMEOUT, 0.2);
        $connections = [self::$server->url() . '?timeout=0.2', $redis];
        $connections[] = new \Predis\Client(['port' => $port, 'read_write_timeout' => 0.2]);
        foreach ($connections as $n => $connection) {
            $client = new Client($connection);
            $client->call('PING');
            self::$server->freezeFor(0.6);
            $id = $client->push("lost-$n", 'x');
            $info = self::$server->client()->info("lost-$n");
            $this->assertSame('x', self::$server->client()->get("lost-$n", $id)['payload']);
            $this->assertSame(1, $info['pushed']);
            $this->assertGreaterThanOrEqual(1, $info['duplicates'], 'it was sent again');
        }
    }

    public function testADuplicateIsNullAlthoughTheConnectionWasClosedWhileIdle(): void
    {
        $this->onEach(function (Client $client): void {
            $this->assertSame('m', $client->push('q', 'x', id: 'm'));
            self::$server->client()->call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
            $this->assertNull($client->push('q', 'x', id: 'm'));
        });
    }

    public function testAPushWithoutAServerFailsAndNamesTheAddress(): void
    {
        $refused = new \Predis\Client(['port' => 1]);
        foreach (['redis://127.0.0.1:1', $refused] as $connection) {
            $begun = microtime(true);
            $push = static fn () => (new Client($connection, pushTimeout: 0.3))->push('q', 'x');
            $error = $this->assertThrows(ConnectionLost::class, $push);
            $this->assertStringContainsString('127.0.0.1:1', $error->getMessage());
            $this->assertFalse($error->mayHaveRun);
            $this->assertLessThan(2.0, microtime(true) - $begun);
        }
    }

    public function testThePrefixOfAConnectionIsThatOfTheKeys(): void
    {
        $redis = self::redis();
        $redis->setOption(\Redis::OPT_PREFIX, 'shop:');
        $predis = new \Predis\Client(['port' => self::$server->port], ['prefix' => 'shop:']);
        foreach ([$redis, $predis] as $connection) {
            self::$server->client()->call('FLUSHALL');
            (new Client($connection))->push('q', 'x');
            (new Client($connection, prefix: ''))->push('q', 'x');
            $this->assertSame([1, 1], [self::$server->client()->len('shop:q'), self::$server->client()->len('q')]);
            $this->assertSame('q', (new Client($connection))->popAny(['r', 'q'])[0]->queue);
        }
    }

    public function testOptionsThatAreNotUnderstoodAreRefused(): void
    {
        $client = self::$server->client();
        $wrong = [
            ['dealy' => 5], ['delay' => '5'], ['delay' => -1], ['delay' => NAN], ['at' => 5], ['priority' => 1.5],
            ['headers' => 'x'], ['replace' => 1],
        ];
        foreach ($wrong as $options) {
            $push = static fn () => $client->push('w', 'x', ...$options);
            $error = $this->assertThrows(\InvalidArgumentException::class, $push);
            $this->assertStringContainsString(key($options), $error->getMessage());
        }
        $this->assertThrows(\InvalidArgumentException::class, fn () => $client->push('w', 'x', 'by its place'));
        $this->assertNull($client->info('w'), 'nothing was sent');
        foreach (['http://localhost', 'redis://localhost/x', 'redis://localhost?tiemout=5'] as $url) {
            $this->assertThrows(\InvalidArgumentException::class, fn () => new Client($url));
        }
    }

    /**
     * @template T of \Throwable
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    private function assertThrows(string $class, callable $call): \Throwable
    {
        try {
            $call();
        } catch (\Throwable $error) {
            $this->assertInstanceOf($class, $error, $error->getMessage());
            return $error;
        }
        $this->fail("$class was not thrown");
    }

    public function testAPointInTimeLongAgoIsNow(): void
    {
        $this->onEach(function (Client $client): void {
            foreach (['1969-07-20T20:17:40Z', '1971-01-01T00:00:00Z'] as $i => $time) {
                $client->push('q', 'x', id: "m$i", at: new DateTimeImmutable($time));
                $this->assertSame('ready', $client->get('q', "m$i")['state']);
            }
        });
    }

    public function testAPartOfAMillisecondMakesNothingEarly(): void
    {
        $this->onEach(function (Client $client): void {
            $client->push('q', 'x', id: 'm', at: new DateTimeImmutable('2100-01-01T00:00:00.123001Z'));
            $this->assertSame(4_102_444_800_124, $client->get('q', 'm')['due']);
        });
    }

    public function testAConnectionOnWhichNoReplyCameIsNotUsedAgain(): void
    {
        $port = TestServer::freePort();
        $this->start("\$server = stream_socket_server('tcp://127.0.0.1:$port');
            foreach ([\"HTTP/1.1 400\\r\\n\", \"+PONG\\r\\n\"] as \$reply) {
                \$open[] = \$one = stream_socket_accept(\$server);
                fread(\$one, 1000);
                fwrite(\$one, \$reply);
            }
            sleep(60);");
        $client = new Client("redis://127.0.0.1:$port");
        $error = self::eventually('it listens', static function () use ($client): ?string {
            try {
                return $client->call('PING');
            } catch (ConnectionLost $lost) {
                return $lost->mayHaveRun ? $lost->getMessage() : null;
            }
        });
        $this->assertStringContainsString('no reply', $error);
        $this->assertSame('PONG', $client->call('PING'));
    }
}
