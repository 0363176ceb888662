<?php

declare(strict_types=1);

namespace Dq\Keeper;

use Dq\Connection\SocketConnection;
use Dq\Exception\ConnectionLost;
use Dq\Exception\DqException;
use Dq\Exception\ServerError;
use Dq\Server;

/** Sends commands to the server that has a queue, and finds that server again after it has changed. */
final class Route
{
    /** How often one command follows what nodes of a cluster say about where a queue is. */
    private const HOPS = 5;

    /** @var array<string, Server> the server of each key, as far as it is known */
    private array $homes = [];
    /** @var array<string, SocketConnection> by address */
    private array $open = [];
    /** Which of the known servers is asked next. */
    private int $next = 0;

    public function __construct(private readonly Servers $servers)
    {
    }

    /**
     * Sends a command once. After an error the next call may try another server.
     *
     * @param list<string> $words
     *
     * @throws DqException
     */
    public function call(string $key, array $words): mixed
    {
        $asking = null;
        for ($hop = 0; true; $hop++) {
            try {
                $server = $asking ?? $this->homes[$key] ??= $this->find();
                $connection = $this->connection($server);
                if ($asking !== null) {
                    $connection->call(['ASKING']);
                }
                return $connection->call($words);
            } catch (ServerError $error) {
                $asking = null;
                unset($this->homes[$key]);
                if (!$this->servers->moves || $hop === self::HOPS || !in_array($error->kind, ['MOVED', 'ASK'], true)) {
                    $this->next++;
                    throw $error;
                }
                $named = self::named($error, $server);
                if ($error->kind === 'ASK') {
                    $asking = $named; // For this command only.
                } else {
                    $this->homes[$key] = $named;
                }
            } catch (ConnectionLost $lost) {
                unset($this->homes[$key]);
                $this->next++;
                throw $lost;
            }
        }
    }

    /** Returns the server to begin with. */
    private function find(): Server
    {
        $known = $this->servers->known[$this->next % count($this->servers->known)];
        if ($this->servers->service === null) {
            return $known;
        }
        $address = $this->connection($known)->call(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', $this->servers->service]);
        if (!is_array($address)) {
            $this->next++;
            throw new DqException("the Sentinel at {$known->address()} knows no master {$this->servers->service}");
        }
        return $this->servers->master->at($address[0], (int) $address[1]);
    }

    /** Returns the server that an error names, as in MOVED 1234 host:port; without a host that of the speaker. */
    private static function named(ServerError $error, Server $speaker): Server
    {
        $address = preg_match('/(?:MOVED|ASK) \d+ (\S+)/', $error->getMessage(), $said) ? $said[1] : '';
        $host = (string) substr($address, 0, (int) strrpos($address, ':'));
        return $speaker->at($host === '' ? $speaker->host : $host, (int) substr((string) strrchr($address, ':'), 1));
    }

    private function connection(Server $server): SocketConnection
    {
        return $this->open[$server->address()] ??= new SocketConnection($server);
    }
}
