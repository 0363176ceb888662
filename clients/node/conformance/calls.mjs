// Calls each method of a queue with all its options, for the conformance suite, which looks at what the server gets.
import { parseArgs } from 'node:util';
import { Queue } from 'dq-client';

const { values } = parseArgs({ options: { url: { type: 'string' } } });
const queue = new Queue('q', { connection: values.url });
const soon = new Date(Date.now() + 3_600_000);
const common = { priority: 1, attempts: 1, lease: 5000, group: 'g', headers: { h: '1' } };
const each = { ...common, ttl: 5_000_000, replace: true, later: true, maxWait: 5000, retain: 5000, batch: 'b' };
await queue.push('x', { id: 'm', at: soon, ...each });
await queue.push('x', { id: 'm', delay: 5000, ...each });
await queue.pushMany(['x'], { ids: ['n'], at: soon, ...each });
await queue.pushMany(['x'], { ids: ['n'], delay: 5000, ...each });
const past = { attempt: 2, error: 'e', checkpoint: 'c', dead: true, reason: 'retries' };
await queue.push('x', past);
await queue.pushMany(['x'], past);
await queue.pushAndWait('x', { timeout: 1 }).catch(() => {});
await queue.schedule('s', 'x', { every: 60_000, offset: 1, at: soon, until: soon, times: 2, ttl: 5, ...common });
await queue.schedule('s', 'x', { cron: '@daily', tz: 'UTC' });
await queue.follow('b', 'x', { id: 'f', delay: 5000, ...common });
await queue.batchInfo('b');
await queue.cancelBatch('b');
await queue.cancel('m');
await queue.reschedule('n', { at: soon, priority: 1 });
await queue.reschedule('n', { delay: 5000 });
await queue.promote({ count: 1, until: soon });
await queue.redrive({ count: 1, delay: 5000, older: 0, reason: 'expired' });
await queue.redrive({ ids: ['m'] });
await queue.get('m');
await queue.peek({ state: 'ready', count: 1, group: 'g' });
await queue.len('ready', { group: 'g' });
await queue.info();
for (const flow of ['in', 'out', 'all', { group: 'g' }]) {
  await queue.pause(5000, flow);
  await queue.resume(flow);
}
const settings = {
  ...{ lease: 5000, maxLease: 60_000, delay: 1000, attempts: 2, backoff: [1000, 60_000], jitter: 10, ttl: 60_000 },
  ...{ maxLen: 5, maxInflight: 5, rate: [5, 1000], deadLen: 5, deadTtl: 60_000, retain: 5000, doneLen: 5 },
  ...{ maxPayload: 100, groupInflight: 2, groupRate: [5, 1000], errors: 2, groupOrder: 'turn', dedupe: 5000 },
  ...{ forward: 'STREAM due TRIM 9', deadForward: 'QUEUE dead' },
};
await queue.declare(settings);
await queue.create(settings);
await queue.alter(settings);
await queue.purge({ states: ['ready'], count: 1, group: 'g', recurring: true, older: 0 });
await queue.close();
