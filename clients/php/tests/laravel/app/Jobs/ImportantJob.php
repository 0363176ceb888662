<?php

declare(strict_types=1);

namespace App\Jobs;

final class ImportantJob extends Job
{
    public int $priority = 5;
}
