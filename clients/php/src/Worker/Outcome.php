<?php

declare(strict_types=1);

namespace Dq\Worker;

use Dq\Message;
use Dq\Reject;
use Dq\Retry;

/** What becomes of a message: a command, and what the log says. It is made in the child, and sent by the parent. */
final class Outcome
{
    /** The longest result and the longest error that the server keeps, in bytes. */
    private const RESULT = 65536;
    private const ERROR = 1024;
    /** The longest time of a retry, in ms. */
    private const LONGEST = 4398046511103;

    /**
     * @param string       $kind    ok, fail, reject, retry, or back (given back, uncounted)
     * @param list<string> $words   what follows the receipt in the command
     * @param string|null  $error   for the log
     * @param string       $details where the error happened, and its causes
     */
    private function __construct(
        public readonly string $kind,
        public readonly string $command,
        public readonly array $words = [],
        public readonly ?string $error = null,
        public readonly string $details = '',
    ) {
    }

    /** Calls a handler and returns what becomes of its message. */
    public static function ofHandler(callable $handler, Message $message): self
    {
        try {
            $result = $handler($message);
        } catch (\Throwable $error) {
            return self::ofError($error);
        }
        return self::ofResult($result);
    }

    /** The handler has failed for a reason that is not its own exception. */
    public static function failed(string $text): self
    {
        return new self('fail', 'DQ.NACK', ['ERROR', $text], $text);
    }

    public static function plainAck(): self
    {
        return new self('ok', 'DQ.ACK');
    }

    public static function givenBack(): self
    {
        return new self('back', 'DQ.NACK', ['NOCOUNT']);
    }

    public function isPlainAck(): bool
    {
        return $this->command === 'DQ.ACK';
    }

    private static function ofResult(mixed $result): self
    {
        if ($result === null || $result === '') {
            return self::plainAck();
        }
        if (!is_string($result)) {
            try {
                $result = json_encode($result, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
            } catch (\Throwable $error) {
                return self::unkept("the result is no JSON and is not kept: {$error->getMessage()}");
            }
        }
        if (strlen($result) > self::RESULT) {
            $text = 'the result of ' . strlen($result) . ' bytes is longer than ' . self::RESULT . ' and is not kept';
            return self::unkept($text);
        }
        return new self('ok', 'DQ.COMPLETE', ['RESULT', $result]);
    }

    /** The result cannot be kept. An empty result tells the caller so, since a handler never sends one. */
    private static function unkept(string $text): self
    {
        return new self('ok', 'DQ.COMPLETE', ['RESULT', ''], $text);
    }

    private static function ofError(\Throwable $error): self
    {
        $details = self::details($error);
        if ($error instanceof Reject) {
            $text = self::cut($error->getMessage());
            return new self('reject', 'DQ.NACK', ['DEAD', 'ERROR', $text], $text, $details);
        }
        if ($error instanceof Retry) {
            return self::ofRetry($error);
        }
        $text = self::cut(get_class($error) . ": {$error->getMessage()}");
        return new self('fail', 'DQ.NACK', ['ERROR', $text], $text, $details);
    }

    private static function ofRetry(Retry $retry): self
    {
        $text = self::cut($retry->getMessage());
        if ($retry->after === null) {
            return new self('retry', 'DQ.NACK', ['ERROR', $text], $text);
        }
        $delay = (float) $retry->after * 1000;
        if (!($delay >= 0 && $delay <= self::LONGEST)) {
            $text = self::cut("Retry after $retry->after is not a number of seconds from 0 to 4398046511.103: $text");
            return new self('fail', 'DQ.NACK', ['ERROR', $text], $text);
        }
        $delay = sprintf('%.0F', round($delay));
        return new self('retry', 'DQ.NACK', ['ERROR', $text, 'DELAY', $delay], $text);
    }

    /** Returns where an error and its causes happened, without the arguments, which may be those of the payload. */
    private static function details(\Throwable $error): string
    {
        $lines = '';
        for ($one = $error; $one !== null; $one = $one->getPrevious()) {
            if ($one !== $error) {
                $lines .= '    caused by ' . get_class($one) . ': ' . self::cut($one->getMessage()) . "\n";
            }
            $lines .= "    at {$one->getFile()}:{$one->getLine()}\n";
            foreach (array_slice($one->getTrace(), 0, 8) as $call) {
                $function = ($call['class'] ?? '') . ($call['type'] ?? '') . $call['function'];
                $lines .= "      $function() at " . ($call['file'] ?? 'PHP') . ':' . ($call['line'] ?? 0) . "\n";
            }
        }
        return rtrim($lines);
    }

    /** Cuts a text, and not within a character. */
    private static function cut(string $text): string
    {
        if (strlen($text) <= self::ERROR) {
            return $text;
        }
        $partOfCharacter = '/(?:[\xC2-\xDF]|[\xE0-\xEF][\x80-\xBF]?|[\xF0-\xF4][\x80-\xBF]{0,2})\z/';
        return preg_replace($partOfCharacter, '', substr($text, 0, self::ERROR));
    }
}
