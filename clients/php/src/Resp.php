<?php

declare(strict_types=1);

namespace Dq;

use Dq\Exception\ConnectionLost;
use Dq\Exception\ServerError;

/** The protocol of the server, RESP2 and RESP3. It collects bytes, and returns replies once they are complete. */
final class Resp
{
    private string $bytes = '';
    private int $at = 0;

    /**
     * Returns the bytes of a command.
     *
     * @param list<string|int> $words
     */
    public static function command(array $words): string
    {
        $bytes = '*' . count($words) . "\r\n";
        foreach ($words as $word) {
            $bytes .= '$' . strlen((string) $word) . "\r\n$word\r\n";
        }
        return $bytes;
    }

    /** Adds bytes that have arrived. */
    public function feed(string $bytes): void
    {
        $this->bytes .= $bytes;
    }

    /**
     * Sets the next complete reply and returns whether there is one. Errors are objects of ServerError, also within
     * other replies.
     */
    public function next(mixed &$reply): bool
    {
        $this->at = 0;
        try {
            $reply = $this->parse();
        } catch (\UnderflowException) {
            return false;
        }
        $this->bytes = substr($this->bytes, $this->at);
        return true;
    }

    private function parse(): mixed
    {
        $end = strpos($this->bytes, "\r\n", $this->at);
        if ($end === false) {
            throw new \UnderflowException();
        }
        $type = $this->bytes[$this->at];
        $rest = substr($this->bytes, $this->at + 1, $end - $this->at - 1);
        $this->at = $end + 2;
        return match ($type) {
            '+', '(' => $rest,
            '-' => ServerError::of($rest),
            ':' => (int) $rest,
            '$' => $this->text((int) $rest),
            '*', '~', '>' => $this->list((int) $rest),
            '%' => $this->list(2 * (int) $rest),
            '_' => null,
            ',' => (float) $rest,
            '#' => $rest === 't',
            '!' => ServerError::of((string) $this->text((int) $rest)),
            '=' => substr((string) $this->text((int) $rest), 4),
            default => throw new ConnectionLost("the server has sent what is no reply ($type)", true),
        };
    }

    private function text(int $length): ?string
    {
        if ($length < 0) {
            return null;
        }
        if (strlen($this->bytes) < $this->at + $length + 2) {
            throw new \UnderflowException();
        }
        $text = substr($this->bytes, $this->at, $length);
        $this->at += $length + 2;
        return $text;
    }

    /** @return list<mixed>|null */
    private function list(int $count): ?array
    {
        if ($count < 0) {
            return null;
        }
        $list = [];
        while (count($list) < $count) {
            $list[] = $this->parse();
        }
        return $list;
    }
}
