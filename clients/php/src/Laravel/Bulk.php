<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Dq\Exception\DeadId;

/** Jobs that are pushed together: one command for all that have the same options. */
final class Bulk
{
    /** @var array<string, array{options: list<string|int>, ids: list<string>, payloads: list<string>}> */
    private array $groups = [];

    /** @param float $pushTimeout in seconds */
    public function __construct(private Link $link, private string $key, private float $pushTimeout)
    {
    }

    /** @param list<string|int> $options of DQ.MPUSH */
    public function add(string $id, string $payload, array $options): void
    {
        $group = serialize($options);
        $this->groups[$group] ??= ['options' => $options, 'ids' => [], 'payloads' => []];
        $this->groups[$group]['ids'][] = $id;
        $this->groups[$group]['payloads'][] = $payload;
    }

    /**
     * Pushes what was added since the last time.
     *
     * @throws DeadId if a failed job has one of the ids; all others were pushed
     */
    public function push(): void
    {
        $groups = $this->groups;
        $this->groups = [];
        $refused = [];
        foreach ($groups as $group) {
            array_push($refused, ...$this->pushGroup($group['options'], $group['ids'], $group['payloads']));
        }
        if ($refused !== []) {
            throw $refused[0];
        }
    }

    /**
     * @param list<string|int> $options
     * @param list<string> $ids
     * @param list<string> $payloads
     * @return list<DeadId> phpredis throws the first one instead of returning all
     */
    private function pushGroup(array $options, array $ids, array $payloads): array
    {
        $words = ['DQ.MPUSH', $this->key, count($payloads), ...$payloads, 'IDS', ...$ids, ...$options];
        try {
            $replies = $this->link->repeat($this->pushTimeout, $words);
        } catch (DeadId $error) {
            return [$error];
        }
        return array_values(array_filter($replies, fn (mixed $reply): bool => $reply instanceof DeadId));
    }
}
