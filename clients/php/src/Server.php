<?php

declare(strict_types=1);

namespace Dq;

/** Where a server is, and how to log in. */
final class Server
{
    /** The parameters of a URL that are options of PHP's SSL context. */
    private const TLS = [
        'cafile', 'capath', 'local_cert', 'local_pk', 'passphrase', 'peer_name', 'verify_peer', 'verify_peer_name',
        'allow_self_signed',
    ];

    /**
     * @param string|null          $path    of a unix socket, instead of host and port
     * @param array<string, mixed> $tls     options of PHP's SSL context
     * @param float                $timeout how many seconds the server may take to connect and to answer
     */
    public function __construct(
        public readonly string $host = '127.0.0.1',
        public readonly int $port = 6379,
        public readonly ?string $path = null,
        public readonly ?string $user = null,
        #[\SensitiveParameter]
        public readonly ?string $password = null,
        public readonly int $database = 0,
        public readonly bool $secure = false,
        public readonly array $tls = [],
        public readonly float $timeout = 5.0,
        public readonly int $protocol = 2,
    ) {
        if ($database < 0) {
            throw new \InvalidArgumentException("the database $database is negative");
        }
        if ($protocol !== 2 && $protocol !== 3) {
            throw new \InvalidArgumentException("the protocol must be 2 or 3, not $protocol");
        }
    }

    /**
     * Reads redis://user:password@host:port/database, rediss:// for TLS, or unix:///path?db=0. The parameters are
     * `timeout` in seconds, `protocol`, `db`, `user`, `password`, and those of PHP's SSL context, such as `cafile`.
     */
    public static function fromUrl(#[\SensitiveParameter] string $url): self
    {
        $scheme = strstr($url, '://', true);
        if (!in_array($scheme, ['redis', 'rediss', 'tcp', 'tls', 'unix'], true)) {
            throw new \InvalidArgumentException('a URL begins with redis://, rediss:// or unix://');
        }
        // parse_url() knows no host-less URL of an unknown scheme.
        $parts = parse_url($scheme === 'unix' ? 'file' . substr($url, 4) : $url);
        if ($parts === false) {
            throw new \InvalidArgumentException("the $scheme:// URL cannot be read");
        }
        parse_str($parts['query'] ?? '', $parameters);
        $path = $parts['path'] ?? '';
        $database = $scheme === 'unix' ? '' : trim($path, '/');
        $database = $database === '' ? ($parameters['db'] ?? '0') : $database;
        if (!is_string($database) || !ctype_digit($database)) {
            throw new \InvalidArgumentException('the database of the URL must be a number');
        }
        $unknown = array_diff(array_keys($parameters), self::TLS, ['timeout', 'protocol', 'db', 'user', 'password']);
        if ($unknown !== []) {
            throw new \InvalidArgumentException('unknown parameters of the URL: ' . implode(', ', $unknown));
        }
        $tls = array_intersect_key($parameters, array_flip(self::TLS));
        return new self(
            trim($parts['host'] ?? '', '[]') ?: '127.0.0.1',
            $parts['port'] ?? 6379,
            $scheme === 'unix' ? $path : null,
            $parameters['user'] ?? self::decoded($parts['user'] ?? ''),
            $parameters['password'] ?? self::decoded($parts['pass'] ?? ''),
            (int) $database,
            $scheme === 'rediss' || $scheme === 'tls',
            array_map(self::flag(...), $tls),
            self::seconds($parameters['timeout'] ?? '5'),
            (int) ($parameters['protocol'] ?? 2),
        );
    }

    /** Returns the server at another address to which one logs in in the same way. */
    public function at(string $host, int $port): self
    {
        return new self(...['host' => $host, 'port' => $port, 'path' => null] + get_object_vars($this));
    }

    /** Returns what to connect to, for people and for errors. */
    public function address(): string
    {
        return $this->path ?? (str_contains($this->host, ':') ? "[$this->host]" : $this->host) . ":$this->port";
    }

    /**
     * Opens a connection that is not logged in.
     *
     * @return resource
     *
     * @throws Exception\ConnectionLost
     */
    public function open(float $timeout)
    {
        return $this->connect($this->secure ? 'tls' : 'tcp', $timeout, STREAM_CLIENT_CONNECT);
    }

    /**
     * Begins to open a connection, and does not wait. It has no TLS yet.
     *
     * @return resource
     *
     * @throws Exception\ConnectionLost
     */
    public function begin()
    {
        return $this->connect('tcp', $this->timeout, STREAM_CLIENT_CONNECT | STREAM_CLIENT_ASYNC_CONNECT);
    }

    /** @return resource */
    private function connect(string $transport, float $timeout, int $flags)
    {
        $address = $this->path === null ? "$transport://{$this->address()}" : "unix://$this->path";
        // TLS is set up later for a connection that is only begun, when the name of the host is not known any more.
        $tls = $this->secure ? $this->tls + ['peer_name' => $this->host] : [];
        $context = stream_context_create(['ssl' => $tls, 'socket' => ['tcp_nodelay' => true]]);
        $cause = null;
        set_error_handler(static function (int $code, string $text) use (&$cause): bool {
            $cause ??= $text;
            return true;
        });
        try {
            $stream = stream_socket_client($address, $code, $text, $timeout, $flags, $context);
        } finally {
            restore_error_handler();
        }
        if ($stream === false) {
            $cause = preg_replace('/^stream_socket_client\(\): /', '', $cause ?? 'no connection');
            throw Exception\ConnectionLost::at($this->address(), $text !== '' ? $text : $cause, false);
        }
        return $stream;
    }

    /**
     * Returns the commands with which a new connection begins.
     *
     * @return list<list<string>>
     */
    public function greeting(): array
    {
        $commands = [];
        $login = $this->user === null ? [$this->password] : [$this->user, $this->password];
        if ($this->password !== null) {
            $commands[] = ['AUTH', ...$login];
        }
        if ($this->protocol === 3) {
            $commands[] = ['HELLO', '3'];
        }
        if ($this->database !== 0) {
            $commands[] = ['SELECT', (string) $this->database];
        }
        return $commands;
    }

    /**
     * Returns the server as an array of the arguments of the constructor, to be sent to another process.
     *
     * @return array<string, mixed>
     */
    public function toArray(): array
    {
        return get_object_vars($this);
    }

    private static function decoded(string $part): ?string
    {
        return $part === '' ? null : rawurldecode($part);
    }

    private static function flag(mixed $value): mixed
    {
        return ['true' => true, '1' => true, 'false' => false, '0' => false][$value] ?? $value;
    }

    private static function seconds(mixed $text): float
    {
        if (!is_numeric($text) || (float) $text <= 0) {
            throw new \InvalidArgumentException('the timeout of the URL must be a positive number of seconds');
        }
        return (float) $text;
    }
}
