<?php

declare(strict_types=1);

namespace App;

use Illuminate\Foundation\Console\Kernel;

final class ConsoleKernel extends Kernel
{
}
