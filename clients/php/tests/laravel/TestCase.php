<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

use PHPUnit\Framework\TestCase as PhpUnitTestCase;

/** A test with a server and an application of its own, whose workers are processes. */
abstract class TestCase extends PhpUnitTestCase
{
    use RunsApplication;

    protected function setUp(): void
    {
        parent::setUp();
        $this->startApplication();
    }

    /** Nothing of this package is deprecated in the version of PHP that runs. */
    protected function assertPostConditions(): void
    {
        $this->assertDoesNotMatchRegularExpression('#deprecated in \S*/clients/php/src/#i', $this->log());
    }

    protected function tearDown(): void
    {
        $this->stopApplication($this->wasNotPassed());
        parent::tearDown();
    }

    private function wasNotPassed(): bool
    {
        return method_exists($this, 'hasFailed') ? $this->hasFailed() : $this->status()->asString() !== 'success';
    }
}
