<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Keeper;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Queue\Connectors\ConnectorInterface;
use InvalidArgumentException;

/** Makes a queue of the settings in config/queue.php. */
final class DqConnector implements ConnectorInterface
{
    /** How much longer than `block_for` the answer of a pop may take, in seconds. */
    private const AFTER_BLOCK = 5;

    /**
     * How long any other answer may take, in seconds, before the command is sent again; at most half of `push_timeout`,
     * so that a push has a second attempt.
     */
    private const REPLY_TIMEOUT = 5;

    public function __construct(private Application $app)
    {
    }

    /** @param array<string, mixed> $config */
    public function connect(array $config): DqQueue
    {
        $connections = new Connections($this->app, $config['connection'] ?? 'default');
        $prefix = $connections->prefix() . ($config['prefix'] ?? '');
        $blockFor = $this->seconds($config, 'block_for', 5, 0);
        $pushTimeout = $this->seconds($config, 'push_timeout', 10, 0.001);
        $lease = (int) round($this->seconds($config, 'lease', 30, 0.001) * 1000);
        $commands = $connections->link(min(self::REPLY_TIMEOUT, $pushTimeout / 2));
        $deliveries = new Deliveries(
            $connections->link($blockFor + self::AFTER_BLOCK),
            $commands,
            fn (string $queue): string => $prefix . $queue,
            $blockFor,
            $lease,
            $this->keeper($config['keep'] ?? 'process', $connections),
            $connections->isCluster()
        );
        return new DqQueue(
            $commands,
            $deliveries,
            (string) ($config['queue'] ?? 'default'),
            $prefix,
            $pushTimeout,
            (bool) ($config['after_commit'] ?? false),
            $this->app->make('config')->get('queue.failed.driver') === 'dq'
        );
    }

    private function keeper(mixed $keep, Connections $connections): ?Keeper
    {
        if ($keep === 'none') {
            return null;
        }
        if ($keep !== 'process') {
            throw new InvalidArgumentException("The option 'keep' of a dq connection must be 'process' or 'none'.");
        }
        return new Keeper($connections->servers());
    }

    /** @param array<string, mixed> $config */
    private function seconds(array $config, string $option, float $default, float $least): float
    {
        $value = $config[$option] ?? $default;
        if (! is_numeric($value) || $value < $least) {
            throw new InvalidArgumentException(
                "The option '{$option}' of a dq connection must be a number of seconds of at least {$least}."
            );
        }
        return (float) $value;
    }
}
