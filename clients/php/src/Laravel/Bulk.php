<?php

declare(strict_types=1);

namespace Dq\Laravel;

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

    /** Pushes what was added since the last time. */
    public function push(): void
    {
        $groups = $this->groups;
        $this->groups = [];
        foreach ($groups as ['options' => $options, 'ids' => $ids, 'payloads' => $payloads]) {
            $this->link->repeat(
                $this->pushTimeout,
                ['DQ.MPUSH', $this->key, count($payloads), ...$payloads, 'IDS', ...$ids, ...$options]
            );
        }
    }
}
