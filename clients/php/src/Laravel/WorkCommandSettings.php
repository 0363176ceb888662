<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Console\Events\CommandStarting;
use Illuminate\Contracts\Console\Kernel;
use Illuminate\Contracts\Foundation\Application;
use Symfony\Component\Console\Exception\ExceptionInterface;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;

/** Adapts `queue:work` to a connection whose pops wait on the server. */
final class WorkCommandSettings
{
    /** What `--sleep` is by default, before this class changes it; in seconds. */
    private static mixed $sleep = null;

    public function __construct(private Application $app)
    {
    }

    public function handle(CommandStarting $starting): void
    {
        if ($starting->command !== 'queue:work') {
            return;
        }
        $command = $this->app->make(Kernel::class)->all()['queue:work'];
        $command->mergeApplicationDefinition();
        $input = clone $starting->input;
        try {
            $input->bind($command->getDefinition());
        } catch (ExceptionInterface) {
            return; // The command is going to say what is wrong.
        }
        $sleep = $command->getDefinition()->getOption('sleep');
        self::$sleep ??= $sleep->getDefault();
        $sleep->setDefault(self::$sleep);
        $name = $input->getArgument('connection') ?: $this->app->make('config')->get('queue.default');
        if ($this->isOfDq($name)) {
            $this->adapt($this->app->make('queue')->connection($name), $input, $sleep, $name);
        }
    }

    private function adapt(DqQueue $queue, InputInterface $input, InputOption $sleep, string $name): void
    {
        if ($queue->waits()) {
            $sleep->setDefault('0'); // A pause after a pop that has waited would only make jobs late.
        }
        $queue->workFor((int) $input->getOption('timeout'), ! $input->getOption('stop-when-empty'));
        if ($input->getOption('once')) {
            // This worker has no loop, whose event would name the queues.
            $queues = $input->getOption('queue')
                ?: $this->app->make('config')->get("queue.connections.{$name}.queue", 'default');
            $queue->beginRound(explode(',', (string) $queues));
        }
    }

    private function isOfDq(string $connection): bool
    {
        return $this->app->make('config')->get("queue.connections.{$connection}.driver") === 'dq';
    }
}
