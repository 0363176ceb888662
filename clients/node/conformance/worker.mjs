// The worker that the conformance suite drives. What each message asks for is in its payload: see handler.mjs.
import { parseArgs } from 'node:util';
import { closeOnSignals, Worker } from 'dq-client';
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
const whole = (given) => (given === undefined ? undefined : Number(given));

// What a listener should not do.
const HOOKS = {
  fail: () => {
    throw new Error('the listener fails');
  },
  block: () => {
    for (const end = Date.now() + 3000; Date.now() < end; );
  },
};
const HOOK = process.env.DQ_HOOK;

const workers = values.queue.map((given) => {
  const [, queue, concurrency] = /^(.*?)(?:=(\d+))?$/s.exec(given);
  const worker = new Worker(queue, new URL('./handler.mjs', import.meta.url), {
    connection: values.url,
    concurrency: whole(concurrency),
    lease: whole(values.lease),
    grace: whole(values.grace),
    timeLimit: whole(values['time-limit']),
    name: values.name,
  });
  worker.on('lost', ({ id }, reason) => say('lost', { id, reason, at: Date.now() }));
  if (HOOK) worker.on('failed', HOOKS[HOOK]);
  return worker;
});
process.on('exit', (code) => code === 0 && say('stopped'));
closeOnSignals(...workers);
await Promise.all(workers.map((worker) => worker.waitUntilReady()));
say('ready');
