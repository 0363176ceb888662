<?php

declare(strict_types=1);

namespace Dq;

/** Reads the replies of the server. */
final class Reply
{
    /**
     * Returns a reply of fields and values, a flat array in RESP2, as a map. Headers are a map, too.
     *
     * @param array<mixed>|null $reply
     *
     * @return array<string, mixed>
     */
    public static function map(?array $reply): array
    {
        $map = self::pairs($reply ?? []);
        if (is_array($map['headers'] ?? null)) {
            $map['headers'] = self::pairs($map['headers']);
        }
        return $map;
    }

    /**
     * @param array<mixed> $reply
     *
     * @return array<string, mixed>
     */
    private static function pairs(array $reply): array
    {
        if (!array_is_list($reply)) {
            return $reply; // A client of RESP3 has read a map.
        }
        $map = [];
        for ($i = 0; $i + 1 < count($reply); $i += 2) {
            $map[$reply[$i]] = $reply[$i + 1];
        }
        return $map;
    }
}
