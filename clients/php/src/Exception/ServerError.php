<?php

declare(strict_types=1);

namespace Dq\Exception;

/** An error that the server answered. */
class ServerError extends DqException
{
    /** What the server cannot do now, but later. */
    private const NOT_NOW = [
        'LOADING', 'BUSY', 'READONLY', 'MASTERDOWN', 'CLUSTERDOWN', 'TRYAGAIN', 'NOREPLICAS', 'MISCONF', 'UNBLOCKED',
    ];
    /** It is the first answer on a connection, whatever was sent there. */
    private const TOO_MANY_CLIENTS = 'ERR max number of clients reached';
    private const CLASSES = [
        'QUEUEFULL' => QueueFull::class,
        'TOOLARGE' => TooLarge::class,
        'DEADID' => DeadId::class,
        'QUEUECLOSED' => QueueClosed::class,
        'OOM' => OutOfMemory::class,
    ];

    /**
     * @param string $kind the first word of the error, such as QUEUEFULL
     */
    final public function __construct(string $message, public readonly string $kind)
    {
        parent::__construct($message);
    }

    /** Returns the exception for the text of an error. */
    public static function of(string $text): self
    {
        $kind = strstr($text . ' ', ' ', true) ?: 'ERR';
        if (preg_match("/\\AERR unknown command ['`]?dq\\./i", $text)) {
            $text = strstr($text, ', with args', true) ?: $text; // Behind that, the server quotes the payload.
            return new NoModule("the server has not loaded the module dq: $text", 'NOMODULE');
        }
        if (preg_match('/\AMOVED \d+ (\S+)/', $text, $moved)) {
            $text = "the server is a node of a cluster, and another node holds the queue: use its address, $moved[1], "
                . "or a client of the whole cluster: $text";
        }
        $class = self::CLASSES[$kind] ?? self::class;
        return new $class($text, $kind);
    }

    /** Returns the same error with the command and the queue that it concerns. */
    public function concerning(string $what): static
    {
        return new static("{$this->getMessage()} ($what)", $this->kind);
    }

    /** Returns whether the server has not carried out the command, and may do so later. */
    public function isNotNow(): bool
    {
        return in_array($this->kind, self::NOT_NOW, true) || $this->isRefusedConnection();
    }

    /** Returns whether a worker may succeed later with the same command, perhaps at another server. */
    public function isTransient(): bool
    {
        return $this->isNotNow() || in_array($this->kind, ['MOVED', 'ASK', 'NOAUTH', 'WRONGPASS'], true);
    }

    /** Returns whether the server has refused the connection itself. */
    public function isRefusedConnection(): bool
    {
        return strncmp($this->getMessage(), self::TOO_MANY_CLIENTS, strlen(self::TOO_MANY_CLIENTS)) === 0;
    }
}
