<?php

declare(strict_types=1);

namespace Dq\Keeper;

use Dq\Server;

/** Where queues are: on one server, in a cluster, or on the master that Sentinels know. */
final class Servers
{
    /**
     * @param list<Server> $known   the server, some nodes of the cluster, or the Sentinels
     * @param bool         $moves   whether the servers of a cluster say where a queue is
     * @param string|null  $service what the Sentinels call the master
     * @param Server|null  $master  how to log in to the master, wherever it is
     */
    private function __construct(
        public readonly array $known,
        public readonly bool $moves = false,
        public readonly ?string $service = null,
        public readonly ?Server $master = null,
    ) {
    }

    public static function one(Server $server): self
    {
        return new self([$server]);
    }

    /** @param non-empty-list<Server> $nodes */
    public static function cluster(array $nodes): self
    {
        return new self($nodes, true);
    }

    /**
     * @param non-empty-list<Server> $sentinels
     * @param Server                 $master    its host and port are those that the Sentinels say
     */
    public static function sentinels(array $sentinels, string $service, Server $master): self
    {
        return new self($sentinels, false, $service, $master);
    }

    /** Returns whether any of them is reached by TLS. */
    public function areSecure(): bool
    {
        return ($this->master?->secure ?? false)
            || array_filter($this->known, static fn (Server $one): bool => $one->secure) !== [];
    }

    /** @return array<string, mixed> to be sent to another process, where fromArray() reads it */
    public function toArray(): array
    {
        return [
            'known' => array_map(static fn (Server $one): array => $one->toArray(), $this->known),
            'moves' => $this->moves,
            'service' => $this->service,
            'master' => $this->master?->toArray(),
        ];
    }

    /**
     * @param array<string, mixed> $servers of toArray()
     * @param float                $timeout of each server, in seconds
     */
    public static function fromArray(array $servers, float $timeout): self
    {
        $server = static fn (array $one): Server => new Server(...['timeout' => $timeout] + $one);
        return new self(
            array_map($server, $servers['known']),
            $servers['moves'],
            $servers['service'],
            $servers['master'] === null ? null : $server($servers['master']),
        );
    }
}
