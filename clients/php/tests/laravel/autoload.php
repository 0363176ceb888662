<?php

/**
 * Loads Laravel as Debian packs it, which has no `vendor/autoload.php`, the client, and the application of the tests.
 */

declare(strict_types=1);

require_once 'Illuminate/autoload.php';
@include_once 'Predis/autoload.php';

require_once __DIR__ . '/../../autoload.php';
require_once __DIR__ . '/time_of_day.php';

spl_autoload_register(function (string $class): void {
    foreach (['App\\' => __DIR__ . '/app/', 'Dq\\Tests\\Laravel\\' => __DIR__ . '/'] as $namespace => $directory) {
        $file = $directory . str_replace('\\', '/', substr($class, strlen($namespace))) . '.php';
        if (str_starts_with($class, $namespace) && is_file($file)) {
            require $file;
        }
    }
});
