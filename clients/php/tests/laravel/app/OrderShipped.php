<?php

declare(strict_types=1);

namespace App;

final class OrderShipped
{
    public function __construct(public string $order)
    {
    }
}
