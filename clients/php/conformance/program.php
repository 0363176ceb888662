<?php

/*
 * What the programs of the conformance suite have in common: options, and JSON for any bytes.
 */

declare(strict_types=1);

require __DIR__ . '/../autoload.php';

error_reporting(E_ALL);
set_error_handler(static function (int $code, string $text, string $file, int $line): bool {
    if ((error_reporting() & $code) === 0) {
        return false; // It was called with @.
    }
    throw new ErrorException($text, 0, $code, $file, $line);
});

/**
 * Returns the options of the command line. Those that may be repeated are lists.
 *
 * @return array<string, list<string>>
 */
function options(): array
{
    $options = [];
    $words = array_slice($GLOBALS['argv'], 1);
    for ($i = 0; $i + 1 < count($words); $i += 2) {
        $options[substr($words[$i], 2)][] = $words[$i + 1];
    }
    return $options;
}

/** Returns JSON in which bytes that are no UTF-8 are surrogate escapes. */
function json(mixed $value): string
{
    if (is_array($value)) {
        $pairs = [];
        foreach ($value as $name => $one) {
            $pairs[] = json((string) $name) . ':' . json($one);
        }
        return '{' . implode(',', $pairs) . '}';
    }
    if (!is_string($value)) {
        return json_encode($value, JSON_THROW_ON_ERROR);
    }
    $text = '';
    $characters = '(?:[\x00-\x7F]|[\xC2-\xDF][\x80-\xBF]|[\xE0-\xEF][\x80-\xBF]{2}|[\xF0-\xF4][\x80-\xBF]{3})+';
    while ($value !== '') {
        if (preg_match("/\A$characters/", $value, $found)) {
            $encoded = json_encode($found[0], JSON_INVALID_UTF8_SUBSTITUTE);
            $text .= substr($encoded, 1, -1);
            $value = substr($value, strlen($found[0]));
        } else {
            $text .= sprintf('\udc%02x', ord($value[0]));
            $value = substr($value, 1);
        }
    }
    return "\"$text\"";
}

/**
 * Reads a line of JSON in which surrogate escapes stand for bytes.
 *
 * @return array<string, mixed>
 */
function parsed(string $line): array
{
    // PHP reads no lone surrogates. They are marked with a character that no test uses.
    $marked = preg_replace('/\\\\u[dD][cC]([89a-fA-F][0-9a-fA-F])/', "\u{F8FF}$1", $line);
    return restored(json_decode($marked, true, 512, JSON_THROW_ON_ERROR));
}

function restored(mixed $value): mixed
{
    if (is_string($value)) {
        $byte = static fn (array $found): string => (string) hex2bin($found[1]);
        return preg_replace_callback("/\u{F8FF}([0-9a-fA-F]{2})/", $byte, $value);
    }
    if (!is_array($value)) {
        return $value;
    }
    return array_combine(array_map(restored(...), array_keys($value)), array_map(restored(...), $value));
}

/** @param array<string, mixed> $fields */
function say(string $event, array $fields = []): void
{
    fwrite(STDOUT, json(['event' => $event] + $fields) . "\n");
}

/** Returns the time in ms since 1970. */
function at(): int
{
    return (int) floor(microtime(true) * 1000);
}
