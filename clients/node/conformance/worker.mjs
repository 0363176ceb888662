// The worker that the conformance suite drives. What each message asks for is in its payload: see handler.mjs.
import { parseArgs } from 'node:util';
import { closeOnSignals, TimeLimitExceeded, Worker } from 'dq-client';
import { say } from './say.mjs';

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    queue: { type: 'string', multiple: true },
    lease: { type: 'string' },
    grace: { type: 'string', default: '30000' },
    name: { type: 'string', default: 'worker' },
    'time-limit': { type: 'string' },
  },
});
const milliseconds = (given) => (given === undefined ? undefined : Number(given));

const workers = values.queue.map((given) => {
  const at = given.lastIndexOf('=');
  const worker = new Worker(given.slice(0, at), new URL('./handler.mjs', import.meta.url), {
    connection: values.url,
    concurrency: Number(given.slice(at + 1)),
    lease: milliseconds(values.lease),
    grace: milliseconds(values.grace),
    timeLimit: milliseconds(values['time-limit']),
    name: values.name,
  });
  worker.on('failed', ({ id }, error) => {
    // What else handlers throw is said in their thread.
    if (error instanceof TimeLimitExceeded) say('end', { id, how: 'fail', at: Date.now() });
  });
  worker.on('lost', ({ id }, reason) => say('lost', { id, reason, at: Date.now() }));
  return worker;
});
process.on('exit', (code) => code === 0 && say('stopped'));
closeOnSignals(...workers);
await Promise.all(workers.map((worker) => worker.waitUntilReady()));
say('ready');
