// Workers whose handlers are functions in the main thread. The conformance suite drives those whose handlers are in a
// file.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MessageLost, Queue, RetryError, TimeLimitExceeded, UnrecoverableError, Worker } from 'dq-client';
import { eventually, Server } from './server.mjs';

/** Starts a server, opens a queue and starts a worker that is closed when the test ends. */
async function working(t, handler, options = {}) {
  const server = await Server.start(t);
  const queue = new Queue('q', { connection: server.url });
  const worker = new Worker('q', handler, { connection: server.url, grace: 1000, ...options });
  const events = [];
  for (const name of ['active', 'completed', 'failed', 'lost']) {
    worker.on(name, (job, more) => events.push([name, job.id, more?.message ?? more]));
  }
  worker.on('error', () => {});
  t.after(() => Promise.all([worker.close(), queue.close()]));
  await worker.waitUntilReady();
  return { server, queue, worker, events };
}

const spin = (ms) => {
  for (const end = Date.now() + ms; Date.now() < end; );
};

test('a handler that blocks the event loop for three leases keeps its message', async (t) => {
  const { server, queue, worker, events } = await working(t, () => spin(3200), { lease: 1000, concurrency: 2 });
  const done = once(worker, 'completed');
  await queue.push('x', { id: 'm' });
  await done;
  await eventually('it is acked', async () => (await queue.info()).acked === 1);
  assert.deepEqual(events.slice(0, 2), [
    ['active', 'm', undefined],
    ['completed', 'm', undefined],
  ]);
  assert.equal((await queue.info())['lease-expired'], 0);
  assert.match(await server.admin.info('commandstats'), /dq.mextend/i);
});

test('messages that wait behind a busy handler keep their leases too', async (t) => {
  const { queue, worker, events } = await working(t, () => spin(800), { lease: 1000, concurrency: 4 });
  let done = 0;
  const all = new Promise((resolve) => worker.on('completed', () => ++done === 4 && resolve()));
  await queue.pushMany(['1', '2', '3', '4']);
  await all;
  await eventually('all are acked', async () => (await queue.info()).acked === 4);
  assert.equal((await queue.info()).delivered, 4);
  assert.equal(events.filter(([name]) => name === 'lost').length, 0);
});

test('a message that is cancelled behind a busy handler is not begun', async (t) => {
  const handler = ({ id }) => {
    if (id !== 'first') return;
    execFileSync('redis-cli', ['-p', server.port, 'DQ.CANCEL', 'q', 'second']);
    spin(300); // The notice arrives.
  };
  const { server, queue, events } = await working(t, handler, { concurrency: 2 });
  await queue.pushMany(['1', '2'], { ids: ['first', 'second'] });
  await eventually('all are done', async () => (await queue.len()) === 0);
  await eventually('it is told', () => events.some(([name]) => name === 'lost'));
  assert.ok(!events.some(([name, id]) => name === 'active' && id === 'second'));
});

test('the signal says why a message was taken', async (t) => {
  const reasons = [];
  const { queue, worker } = await working(t, async (_, { signal }) => {
    await once(signal, 'abort');
    reasons.push(signal.reason);
  });
  const [active, lost] = [once(worker, 'active'), once(worker, 'lost')];
  await queue.push('x', { id: 'm' });
  await active;
  await queue.cancel('m');
  const [job, reason] = await lost;
  assert.deepEqual([job.id, reason], ['m', 'cancelled']);
  await eventually('the handler was told', () => reasons.length === 1);
  assert.ok(reasons[0] instanceof MessageLost && reasons[0].reason === 'cancelled');
});

test('errors decide what becomes of a message', async (t) => {
  const { server, queue, events } = await working(t, async ({ id, attempt }) => {
    if (id === 'never') throw new UnrecoverableError('no address');
    if (id === 'later' && attempt === 1) throw new RetryError({ after: 300, message: 'busy' });
    if (id === 'broken' && attempt === 1) throw new (class PageMissing extends Error {})('page 7');
    if (id === 'odd') throw 'a text';
  });
  await server
    .do('DQ.ALTER', 'q', 'BACKOFF', '10', '10')
    .catch(() => server.do('DQ.CREATE', 'q', 'BACKOFF', '10', '10'));
  for (const id of ['never', 'later', 'broken']) await queue.push('x', { id });
  await queue.push('x', { id: 'odd', attempts: 1 });
  const state = (id) => server.message('q', id);
  const never = await eventually('it is dead', async () =>
    (await state('never')).state === 'dead' ? state('never') : null,
  );
  assert.deepEqual([never.reason, never.error], ['rejected', 'no address']);
  const odd = await eventually('it is dead', async () => ((await state('odd')).state === 'dead' ? state('odd') : null));
  assert.match(odd.error, /a text/);
  await eventually('both are done', async () => (await queue.len()) === 0);
  const seconds = events.filter(([name]) => name === 'completed').map(([, id]) => id);
  assert.deepEqual(seconds.sort(), ['broken', 'later']);
});

test('a retry after no time is a failure that names it', async (t) => {
  const values = ['30', Number.NaN, -1, 5e12, null];
  const { queue, events } = await working(t, (job) => {
    if (job.id === 'other') throw Object.assign(new Error('busy'), { name: 'RetryError', after: '30' });
    throw new RetryError(job.id === 'option' ? { delay: 5 } : { after: values[job.id], message: 'busy' });
  });
  for (const id of ['0', '1', '2', '3', '4', 'option', 'other']) {
    await queue.push('x', { id, attempts: 1 });
    const { error } = await eventually('it is dead', async () => {
      const found = await queue.get(id);
      return found.state === 'dead' && found;
    });
    const wrong = { option: /there is no option delay/, other: /^RetryError: busy/ };
    assert.match(error, wrong[id] ?? /^TypeError: after must be a number of 0 to 4398046511103 milliseconds, but is /);
  }
  assert.equal(events.filter(([name]) => name === 'failed').length, 7);
});

test('a worker stops while writes are paused, and the server lives', { timeout: 30_000 }, async (t) => {
  const { server, queue, worker } = await working(t, () => {});
  const waiting = async () => /cmd=dq\.pop/i.test(await server.do('CLIENT', 'LIST'));
  await eventually('its pop waits', waiting);
  await server.do('CLIENT', 'PAUSE', 60_000, 'WRITE');
  const late = new Worker('q', () => {}, { connection: server.url });
  t.after(() => late.close());
  const pops = async () => (await server.do('CLIENT', 'LIST')).match(/cmd=dq\.pop/gi)?.length;
  await eventually('the pop of another one is put off', async () => (await pops()) === 2);
  await Promise.all([worker.close(), late.close()]);
  await eventually('their connections are closed', async () => (await pops()) === undefined);
  await server.do('CLIENT', 'UNPAUSE');
  await queue.push('x', { id: 'm' });
  assert.equal((await queue.get('m')).state, 'ready');
});

test('the error of an attempt has its class and where it was thrown', async (t) => {
  const { queue } = await working(t, function broken() {
    throw new (class PageMissing extends Error {})('ü'.repeat(2000));
  });
  await queue.push('x', { id: 'm', attempts: 1 });
  const { error } = await eventually('it is dead', async () => {
    const found = await queue.get('m');
    return found.state === 'dead' && found;
  });
  assert.match(error, /^PageMissing: ü+\n {4}at .*broken/);
  assert.ok(Buffer.byteLength(error) <= 1024);
});

test('a time limit fails a handler, also one that blocks the event loop', async (t) => {
  const reasons = [];
  const options = { timeLimit: 200, concurrency: 2 };
  const { queue, worker, events } = await working(
    t,
    async ({ id }, { signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason));
      if (id === 'spin') spin(1000);
      else await once(signal, 'abort');
    },
    options,
  );
  for (const id of ['wait', 'spin']) {
    const failed = once(worker, 'failed');
    await queue.push('x', { id, attempts: 1 });
    const [job, error] = await failed;
    assert.equal(job.id, id);
    assert.ok(error instanceof TimeLimitExceeded);
    await eventually('it is dead', async () => (await queue.get(id)).state === 'dead');
  }
  assert.ok(reasons.every((reason) => reason instanceof TimeLimitExceeded));
  assert.ok(!events.some(([name]) => name === 'completed' || name === 'lost'));
});

test('a checkpoint is there at the next attempt', async (t) => {
  const seen = [];
  const { queue } = await working(t, async (job) => {
    seen.push(job.checkpoint?.toString());
    job.save('page 7');
    await eventually('it is stored', async () => (await queue.get('m')).checkpoint?.toString() === 'page 7');
    if (job.attempt === 1) throw new RetryError({ after: 0 });
  });
  await queue.push('x', { id: 'm' });
  await eventually('it is done', async () => (await queue.len()) === 0);
  assert.deepEqual(seen, [undefined, 'page 7']);
});

test('jobs tell what BullMQ tells', async (t) => {
  const { queue, worker } = await working(t, async (job) => job.data.n * 2);
  const done = once(worker, 'completed');
  const before = Date.now();
  await queue.add('double', { n: 4 }, { id: 'm', retain: 60_000 });
  const [job, result] = await done;
  assert.deepEqual(
    [job.name, job.data, job.queueName, job.attemptsMade, result, job.returnvalue],
    ['double', { n: 4 }, 'q', 0, 8, 8],
  );
  assert.ok(job.timestamp >= before && job.processedOn >= before && job.finishedOn >= job.processedOn);
  assert.equal(JSON.parse(JSON.stringify(job)).id, 'm');
  await eventually('it is done', async () => (await queue.get('m')).result?.toString() === '8');
});

test('a payload that is no job fails with an error that does not show it', async (t) => {
  const { queue } = await working(t, (job) => job.data);
  await queue.push('{"task": 1}', { id: 'm', attempts: 1 });
  await eventually('it is dead', async () => (await queue.get('m')).state === 'dead');
  const { error } = await queue.get('m');
  assert.match(error, /the payload is not the JSON of a job, \{"name": …, "data": …\}/);
  assert.doesNotMatch(error, /task/);
});

test('failures are logged, and say what is now dead', async (t) => {
  const { server, queue, worker } = await working(t, (job) => {
    if (job.isJob()) throw new Error('no address', { cause: new TypeError('no @') });
    return job.data;
  });
  worker.removeAllListeners('failed');
  const [log, dead] = [t.mock.method(console, 'error', () => {}), once(worker, 'dead')];
  await server.do('DQ.ALTER', 'q', 'MKQUEUE', 'BACKOFF', '10', '10');
  await queue.add('welcome', 0, { id: 'm', attempts: 2 });
  const [job] = await dead;
  assert.deepEqual([job.id, job.name, job.attempt], ['m', 'welcome', 2]);
  assert.match(job.failedReason, /^Error: no address\ncaused by TypeError: no @\n +at /);
  await queue.push('{}', { id: 'odd' });
  await eventually('all are logged', () => log.mock.callCount() >= 3);
  const lines = log.mock.calls.map(({ arguments: [text] }) => text.split('\n')[0]);
  assert.deepEqual(lines.slice(0, 2), [
    'q: message "m" ("welcome") at attempt 1 failed: Error: no address',
    'q: message "m" ("welcome") at attempt 2 failed and is now dead: Error: no address',
  ]);
  assert.match(lines[2], /^q: message "odd" at attempt 1 failed: DqError: the payload is not the JSON of a job/);
});

test('odd causes of an error harm neither its text nor the worker', async (t) => {
  const itself = new Error('itself');
  itself.cause = itself;
  const unreadable = new Error('unreadable');
  Object.defineProperty(unreadable, 'cause', { get: () => assert.fail('it cannot be read') });
  const addresses = new AggregateError([new Error('connect ECONNREFUSED ::1:25')]);
  const errors = [
    [itself, /^Error: itself\n +at /],
    [unreadable, /^Error: unreadable\n +at /],
    [new Error('a code', { cause: { code: 3 } }), /^Error: a code\n +at /],
    [
      new Error('no mail', { cause: addresses }),
      /^Error: no mail\ncaused by AggregateError: connect ECONNREFUSED ::1:25\n/,
    ],
    [new Error('x'.repeat(600), { cause: new TypeError('no @') }), /^Error: x+\ncaused by TypeError: no @\n +at /],
  ];
  const { queue, worker } = await working(t, (job) => {
    throw errors[job.data][0];
  });
  for (const [number, [, text]] of errors.entries()) {
    const dead = once(worker, 'dead');
    await queue.add('odd', number, { attempts: 1 });
    const [job] = await dead;
    assert.match(job.failedReason, text);
  }
});

test('a worker that is closed gives back what it did not finish', async (t) => {
  const { queue, worker, events } = await working(t, () => new Promise(() => {}), { concurrency: 2, grace: 100 });
  assert.equal(worker.isHealthy(), true);
  const active = once(worker, 'active');
  await queue.push('x', { id: 'm' });
  await active;
  await Promise.all([worker.close(), worker.close()]);
  assert.equal(worker.isHealthy(), false);
  const { state, attempt } = await queue.get('m');
  assert.deepEqual([state, attempt], ['ready', 0]);
  assert.deepEqual(events.at(-1), ['lost', 'm', 'stopping']);
  assert.equal((await queue.info())['given-back'], 1);
});

test('a worker without its server is not healthy for ever', async (t) => {
  const server = await Server.start(t);
  const worker = new Worker('q', () => {}, { connection: server.url, lease: 1000 });
  const errors = [];
  worker.on('error', (error) => errors.push(error));
  t.after(() => worker.close(true));
  await worker.waitUntilReady();
  await server.kill9();
  await eventually('it says so', () => errors.length > 0);
  await eventually('it is not healthy', () => !worker.isHealthy(), 15_000);
});

test('messages of a thread that ended are delivered again, to the next thread', async (t) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'dq-node-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = path.join(directory, 'handler.cjs');
  writeFileSync(file, 'module.exports = ({ attempt }) => { if (attempt === 1) process.exit(1); return "done"; };');
  const { server, queue, worker } = await working(t, pathToFileURL(file));
  await server.do('DQ.ALTER', 'q', 'MKQUEUE', 'BACKOFF', '10', '10');
  const done = once(worker, 'completed');
  await queue.push('x', { id: 'm', retain: 60_000 });
  const [job, result] = await done;
  assert.deepEqual([job.id, job.attempt, result], ['m', 2, 'done']);
  await eventually('it is done', async () => (await queue.get('m')).state === 'done');
});

test('two workers of a process share a thread but not their queues', async (t) => {
  const { server, queue, worker } = await working(t, () => {});
  const other = new Worker('r', () => {}, { connection: server.url });
  t.after(() => other.close());
  await other.waitUntilReady();
  await worker.close();
  const done = once(other, 'completed');
  await server.do('DQ.PUSH', 'r', 'x');
  await done;
  await queue.push('x');
  assert.equal(await queue.len('ready'), 1);
});

test('a process ends by itself once its workers are closed', async (t) => {
  const server = await Server.start(t);
  const program = `import { Worker } from 'dq-client';
    for (let at = 0; at < 2; at += 1) {
      const worker = new Worker('q', () => {}, { connection: '${server.url}' });
      await worker.waitUntilReady();
      await worker.close();
    }`;
  const options = { cwd: fileURLToPath(new URL('..', import.meta.url)), timeout: 30_000 };
  execFileSync(process.execPath, ['--input-type=module', '--eval', program], options);
});
