<?php

declare(strict_types=1);

namespace Dq\Connection;

use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;
use Predis\ClientInterface;
use Predis\Connection\NodeConnectionInterface;
use Predis\Response\ErrorInterface;
use Predis\Response\Status;

/** A connection of Predis. */
final class PredisConnection implements Connection
{
    public function __construct(private readonly ClientInterface $client)
    {
    }

    public function call(array $words, float $block = 0.0): mixed
    {
        try {
            $this->leaveIfClosed();
            $this->allow($block);
            $reply = $this->client->executeRaw($words, $failed);
        } catch (\Predis\Response\ServerException $error) {
            throw ServerError::of($error->getMessage());
        } catch (\Predis\PredisException $error) {
            $this->close();
            // Errors have a code if the connection was not opened.
            $mayHaveRun = $error->getCode() === 0;
            throw ConnectionLost::at($this->address(), $error->getMessage(), $mayHaveRun, $error);
        }
        if ($failed) {
            throw ServerError::of((string) $reply);
        }
        return self::plain($reply);
    }

    public function close(): void
    {
        $this->client->disconnect();
    }

    public function address(): string
    {
        $connection = $this->client->getConnection();
        return $connection instanceof NodeConnectionInterface ? (string) $connection : 'the servers of Predis';
    }

    public function prefix(): string
    {
        $prefix = $this->client->getOptions()->prefix;
        return is_object($prefix) ? $prefix->getPrefix() : '';
    }

    /** Has the next command open another connection if the server has closed this one while it was idle. */
    private function leaveIfClosed(): void
    {
        $connection = $this->client->getConnection();
        if (method_exists($connection, 'getCurrent')) {
            $connection = $connection->getCurrent(); // One that follows Sentinels.
        }
        if (!$connection instanceof NodeConnectionInterface || !$connection->isConnected()) {
            return;
        }
        $read = [$connection->getResource()];
        $write = $except = null;
        // Nothing is expected: what can be read is the end.
        if (is_resource($read[0]) && stream_select($read, $write, $except, 0, 0) !== 0) {
            $connection->disconnect();
        }
    }

    /** Lets the reply be as much later as the command itself may wait. */
    private function allow(float $block): void
    {
        $connection = $this->client->getConnection();
        if (!$connection instanceof NodeConnectionInterface) {
            return;
        }
        $parameters = $connection->getParameters();
        $timeout = $parameters->read_write_timeout ?? (float) ini_get('default_socket_timeout');
        $stream = $connection->getResource();
        if (is_resource($stream) && $timeout > 0) {
            $seconds = $timeout + $block;
            stream_set_timeout($stream, (int) $seconds, (int) (($seconds - (int) $seconds) * 1_000_000));
        }
    }

    private static function plain(mixed $reply): mixed
    {
        return match (true) {
            $reply instanceof ErrorInterface => ServerError::of($reply->getMessage()),
            $reply instanceof Status => (string) $reply,
            is_array($reply) => array_map(self::plain(...), $reply),
            default => $reply,
        };
    }
}
