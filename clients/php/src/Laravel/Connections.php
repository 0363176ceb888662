<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Client;
use Dq\Keeper\Servers;
use Dq\Server;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Redis\RedisManager;
use Illuminate\Support\Arr;
use InvalidArgumentException;
use Predis\Client as PredisClient;
use Predis\Command\CommandInterface;
use Redis;

/** Opens connections of their own with the settings of one Redis connection of Laravel, `database.redis.NAME`. */
final class Connections
{
    /** How long opening a connection may take, in seconds, if the settings say nothing. */
    private const CONNECT_TIMEOUT = 5;

    /** What a queue sends in a cluster. The key is the first argument of each. */
    private const COMMANDS = [
        'DQ.PUSH', 'DQ.MPUSH', 'DQ.POP', 'DQ.EXTEND', 'DQ.ACK', 'DQ.NACK', 'DQ.GET', 'DQ.LEN', 'DQ.PEEK', 'DQ.CANCEL',
        'DQ.RESCHEDULE', 'DQ.PURGE', 'DQ.RELEASE',
    ];

    public function __construct(private Application $app, private string $name)
    {
    }

    /** @param float $timeout how long a reply may take, in seconds */
    public function link(float $timeout): Link
    {
        return new Link(fn (): Client => $this->open($timeout), $this->address());
    }

    public function isCluster(): bool
    {
        return isset($this->settings()['clusters'][$this->name]) && ! isset($this->settings()[$this->name]);
    }

    /** What the connection puts before each key. */
    public function prefix(): string
    {
        $settings = $this->settings();
        $own = $this->isCluster() ? $settings['clusters']['options'] ?? [] : $settings[$this->name];
        return (string) ($own['prefix'] ?? $own['options']['prefix'] ?? $settings['options']['prefix'] ?? '');
    }

    /** Host and port, or the path of a socket, for messages. */
    public function address(): string
    {
        if ($this->isCluster()) {
            return "the cluster {$this->name}";
        }
        $one = ServerSettings::parse($this->settings()[$this->name]);
        return $one['path'] ?? (($one['host'] ?? $this->name) . (isset($one['port']) ? ":{$one['port']}" : ''));
    }

    /**
     * The servers, as the keeper of leases connects to them.
     *
     * @throws InvalidArgumentException if it cannot
     */
    public function servers(): Servers
    {
        $settings = $this->settings();
        $isCluster = $this->isCluster();
        $own = $isCluster ? $settings['clusters'][$this->name] : $settings[$this->name];
        $ofClusters = $isCluster ? $settings['clusters']['options'] ?? [] : [];
        $options = array_merge($settings['options'] ?? [], $ofClusters, $own['options'] ?? []);
        $options['parameters'] = $options['parameters'][$this->name] ?? $options['parameters'] ?? [];
        $several = array_values(Arr::except($own, 'options'));
        // Otherwise Predis itself chooses the server of a key.
        if ($isCluster && ($this->driver() !== 'predis' || ($options['cluster'] ?? null) === 'redis')) {
            return Servers::cluster(array_map(fn (mixed $node): Server => self::node($node, $options), $several));
        }
        if (! $isCluster && isset($own[0], $options['service']) && ($options['replication'] ?? null) === 'sentinel') {
            $sentinel = fn (array|string $one): Server => ServerSettings::server($one, []);
            $master = ServerSettings::server([], ['parameters' => $options['parameters']]);
            return Servers::sentinels(array_map($sentinel, $several), (string) $options['service'], $master);
        }
        $one = $isCluster || isset($own[0]) ? [] : ServerSettings::parse($own);
        if (isset($one['host']) || isset($one['path'])) {
            return Servers::one(ServerSettings::server($own, $options));
        }
        throw new InvalidArgumentException(
            "The process that keeps leases does not know where in the Redis connection [{$this->name}] a queue is: it "
            . "supports one server, a cluster of Redis, and Sentinels. Set 'keep' => 'none'."
        );
    }

    /**
     * @param array<string, mixed>|string $settings
     * @param array<string, mixed> $options
     */
    private static function node(array|string $settings, array $options): Server
    {
        // A cluster has one database, whatever the settings say.
        return ServerSettings::server(is_array($settings) ? ['database' => 0] + $settings : $settings, $options);
    }

    private function open(float $timeout): Client
    {
        $settings = $this->settings();
        $driver = $this->driver();
        $own = [
            'persistent' => false,
            'timeout' => ServerSettings::parse($settings[$this->name] ?? [])['timeout']
                ?? min(self::CONNECT_TIMEOUT, $timeout),
            'read_timeout' => $timeout,
            'read_write_timeout' => $timeout,
        ];
        if (isset($settings[$this->name])) {
            $settings[$this->name] = self::withOwn($settings[$this->name], $own, $driver);
        } else {
            $settings['clusters']['options'] = array_merge($settings['clusters']['options'] ?? [], $own);
        }
        $manager = in_array($driver, ['phpredis', 'predis'], true)
            ? new RedisManager($this->app, $driver, Arr::except($settings, 'client'))
            : $this->app->make('redis');
        $client = $manager->resolve($this->name)->client();
        if ($client instanceof Redis) {
            $client->setOption(Redis::OPT_READ_TIMEOUT, $timeout);
        }
        if ($client instanceof PredisClient && $this->isCluster()) {
            $this->teachKeys($client);
        }
        return new Client($client, 0.0, '');
    }

    /**
     * The settings of a connection with others that come first.
     *
     * @param array<int|string, mixed> $settings
     * @param array<string, mixed> $own
     * @return array<int|string, mixed>
     */
    private static function withOwn(array $settings, array $own, string $driver): array
    {
        if (isset($settings[0])) {
            // A list of Sentinels: Predis takes these parameters for the servers that they name.
            $parameters = array_merge($settings['options']['parameters'] ?? [], $own);
            return array_replace_recursive($settings, ['options' => ['parameters' => $parameters]]);
        }
        if ($driver === 'phpredis') {
            // The options of all connections come before those of this one, but not before its `options`.
            $own['options'] = array_merge($settings['options'] ?? [], $own);
        }
        return array_merge($settings, $own);
    }

    /** Predis knows of no command of a module where its key is. */
    private function teachKeys(PredisClient $client): void
    {
        $strategy = $client->getConnection()->getClusterStrategy();
        foreach (self::COMMANDS as $command) {
            $strategy->setCommandHandler($command, fn (CommandInterface $sent): string => $sent->getArgument(0));
        }
    }

    private function driver(): string
    {
        return $this->settings()['client'] ?? 'phpredis';
    }

    /** @return array<string, mixed> */
    private function settings(): array
    {
        $settings = $this->app->make('config')->get('database.redis', []);
        if (! isset($settings[$this->name]) && ! isset($settings['clusters'][$this->name])) {
            throw new InvalidArgumentException("The Redis connection [{$this->name}] is not configured.");
        }
        if (is_string($settings[$this->name] ?? null)) {
            $settings[$this->name] = ['url' => $settings[$this->name]];
        }
        return $settings;
    }
}
