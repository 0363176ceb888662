<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Server;
use Illuminate\Support\ConfigurationUrlParser;

/** The settings of one server in `database.redis`, as its parts or as a URL. */
final class ServerSettings
{
    /** What may stand in the options of all servers. */
    private const COMMON = ['username', 'password', 'database', 'scheme', 'context', 'ssl'];

    /**
     * @param array<string, mixed>|string $settings
     * @return array<string, mixed> the parts of its `url`, `path` for a socket, `secure` for TLS
     */
    public static function parse(array|string $settings): array
    {
        $one = (new ConfigurationUrlParser())->parseConfiguration($settings);
        $scheme = strtolower((string) ($one['driver'] ?? $one['scheme'] ?? ''));
        $host = $one['host'] ?? null;
        if (is_string($host) && preg_match('#\A(tcp|tls|ssl|unix)://(.+)\z#i', $host, $parts)) {
            [, $scheme, $host] = $parts;
        }
        if (is_string($host) && str_starts_with($host, '/')) {
            $one['path'] = $host; // This is how phpredis is given a socket.
        }
        $one['host'] = $host;
        $one['secure'] = in_array(strtolower((string) $scheme), ['tls', 'ssl', 'rediss'], true);
        return $one;
    }

    /**
     * The server, as the keeper of leases connects to it.
     *
     * @param array<string, mixed>|string $settings
     * @param array<string, mixed> $options of all servers, where some drivers look for what a server does not say
     */
    public static function server(array|string $settings, array $options): Server
    {
        $own = is_string($settings) ? ['url' => $settings] : $settings;
        $common = ($options['parameters'] ?? []) + $options;
        $one = self::parse(array_filter($own, fn (mixed $value): bool => $value !== null)
            + array_intersect_key($common, array_flip(self::COMMON)));
        $context = $one['context'] ?? [];
        return new Server(
            $one['host'] ?? '127.0.0.1',
            (int) ($one['port'] ?? 6379),
            $one['path'] ?? null,
            self::text($one['username'] ?? null),
            self::text($one['password'] ?? null),
            (int) ($one['database'] ?? 0),
            $one['secure'],
            $one['ssl'] ?? $context['ssl'] ?? $context['stream'] ?? $context
        );
    }

    private static function text(mixed $value): ?string
    {
        return $value === null || $value === '' ? null : (string) $value;
    }
}
