<?php

/** Makes the application of the tests. Its directory, DQ_APP, has the caches and the list of installed packages. */

declare(strict_types=1);

use App\ConsoleKernel;
use Illuminate\Contracts\Console\Kernel;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Foundation\Application;
use Illuminate\Foundation\Exceptions\Handler;

require_once __DIR__ . '/../autoload.php';

$app = new Application(getenv('DQ_APP') ?: throw new RuntimeException('DQ_APP is not set'));
if (method_exists($app, 'dontMergeFrameworkConfiguration')) {
    $app->dontMergeFrameworkConfiguration(); // Debian's package does not have it.
}
$app->singleton(Kernel::class, ConsoleKernel::class);
$app->singleton(ExceptionHandler::class, Handler::class);
return $app;
