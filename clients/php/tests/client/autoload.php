<?php

/*
 * Loads the client and what its tests share. PHP finds Predis in its include path.
 */

declare(strict_types=1);

error_reporting(E_ALL);
@include_once 'Predis/Autoloader.php';
if (class_exists(Predis\Autoloader::class)) {
    Predis\Autoloader::register();
}
require_once __DIR__ . '/../../autoload.php';
require_once __DIR__ . '/TestServer.php';
require_once __DIR__ . '/TestCase.php';
