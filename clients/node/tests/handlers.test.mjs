// Handlers of every kind, and what users hand in around them: each message is done or failed, once.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect, promisify } from 'node:util';
import { Queue, WaitTimeout, Worker } from 'dq-client';
import { Redis } from 'ioredis';
import { eventually, Server } from './server.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));

/** Starts a server, opens a queue and starts a worker that is closed when the test ends. */
async function working(t, handler, options = {}) {
  const server = await Server.start(t);
  const queue = new Queue('q', { connection: server.url });
  const worker = new Worker('q', handler, { connection: server.url, grace: 500, ...options });
  const errors = [];
  worker.on('error', (error) => errors.push(error.message));
  worker.on('failed', () => {});
  t.after(() => Promise.all([worker.close(), queue.close()]));
  await worker.waitUntilReady();
  return { server, queue, worker, errors };
}

/** Writes a program into a directory in which it finds this package. */
function file(t, text, called = 'program.mjs') {
  const directory = mkdtempSync(path.join(HERE, 'program-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const name = path.join(directory, called);
  writeFileSync(name, text);
  return name;
}

test('a handler in an endless loop keeps nothing beyond its time limit', async (t) => {
  const handler = file(
    t,
    `export default async (job) => {
       if (job.id === 'loop') for (;;);
     };`,
  );
  const { queue, worker, errors } = await working(t, handler, { timeLimit: 500, concurrency: 4, lease: 60_000 });
  await queue.push('x', { id: 'loop', attempts: 1 });
  await eventually('it runs', async () => (await queue.len('inflight')) === 1);
  await queue.pushMany(['1', '2', '3'], { ids: ['1', '2', '3'], attempts: 1 });
  await eventually('the others are done', async () => (await queue.info()).acked === 3);
  const { state, error } = await queue.get('loop');
  assert.equal(state, 'dead');
  assert.match(error, /time limit/);
  assert.ok(errors.some((text) => /ended.*time limit/.test(text)));
  assert.ok(worker.isHealthy());
});

test('a handler within its time limit outlives one that has reached it', async (t) => {
  const handler = file(
    t,
    `export default async (job) => {
       if (job.id === 'hangs') await new Promise((resolve) => setTimeout(resolve, 60_000));
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000);
     };`,
  );
  const { queue } = await working(t, handler, { timeLimit: 4000, concurrency: 2, lease: 60_000 });
  await queue.push('x', { id: 'hangs', attempts: 1 });
  await queue.push('x', { id: 'blocks', attempts: 1, delay: 2500 });
  await eventually('it is done', async () => (await queue.info()).acked === 1);
  assert.equal((await queue.get('hangs')).state, 'dead');
  assert.equal(await queue.get('blocks'), null);
});

test('what had not begun when its thread ended is given back', async (t) => {
  const handler = file(
    t,
    `export default async (job) => {
       if (job.id !== 'exit') return;
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
       process.exit(1);
     };`,
  );
  const { queue } = await working(t, handler, { concurrency: 4, lease: 60_000 });
  await queue.push('x', { id: 'exit', attempts: 1 });
  await eventually('it runs', async () => (await queue.len('inflight')) === 1);
  await queue.pushMany(['1', '2', '3'], { ids: ['1', '2', '3'], attempts: 1 });
  await eventually('the others are done', async () => (await queue.info()).acked === 3);
  assert.equal((await queue.get('exit')).state, 'dead');
});

test('a generator is no handler', async (t) => {
  for (const handler of [function* () {}, async function* () {}]) {
    assert.throws(() => new Worker('q', handler, { connection: 'redis://127.0.0.1:1' }), /generator/);
  }
  const generator = function* () {};
  for (const handler of [() => generator(), async () => generator()]) {
    const { queue } = await working(t, handler);
    const id = await queue.push('x', { retain: 60_000 });
    await eventually('it failed', async () => /generator/.test((await queue.get(id)).error));
  }
});

test('a message is not done before its handler, although middleware does not await that', async (t) => {
  const handle = (_job, next) => {
    next();
  };
  const handler = async (job) => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (job.payload.toString() === 'bad') throw new Error('too late for its middleware');
    return 'good';
  };
  const { queue } = await working(t, handler, { middleware: [{ handle }] });
  const ids = [await queue.push('bad', { attempts: 1 }), await queue.push('good', { retain: 60_000 })];
  assert.equal((await queue.pushAndWait('asked', { timeout: 20_000 })).toString(), 'good');
  await eventually('it failed', async () => /too late/.test((await queue.get(ids[0])).error));
  await eventually('it is done', async () => (await queue.get(ids[1])).state === 'done');
});

test('each handler has a context of its own', async (t) => {
  const language = new AsyncLocalStorage();
  const seen = [];
  const { queue } = await working(t, ({ payload }) => {
    seen.push(language.getStore());
    language.enterWith(payload.toString());
  });
  await queue.pushMany(['de', 'fr', 'it', 'es']);
  await eventually('all are done', async () => (await queue.info()).acked === 4);
  await queue.pushMany(['de', 'fr']);
  await eventually('all are done', async () => (await queue.info()).acked === 6);
  assert.deepEqual(seen, Array(6).fill(undefined));
});

test('listeners that throw harm nothing', async (t) => {
  const { queue, worker } = await working(t, ({ id }) => {
    if (id.startsWith('fail')) throw new Error('no');
  });
  for (const event of ['active', 'completed', 'failed', 'dead', 'error']) {
    worker.on(event, () => {
      throw new Error('a listener');
    });
  }
  t.mock.method(console, 'error', () => {});
  await queue.pushMany(['1', '2'], { ids: ['fail-1', 'fail-2'], attempts: 1 });
  await queue.pushMany(Array(20).fill('x'));
  await eventually('all are done', async () => (await queue.info()).acked === 20 && (await queue.info()).dead === 2);
});

test('what is waited for does not come late when the clock of the machine is set', { timeout: 30_000 }, async (t) => {
  const server = await Server.start(t);
  const queue = new Queue('nobody', { connection: server.url });
  const worker = new Worker('q', () => {}, { connection: server.url });
  t.after(() => Promise.all([worker.close(), queue.close()]));
  await worker.waitUntilReady();
  const { now } = Date;
  let hours = 0;
  t.mock.method(Date, 'now', () => now() + hours * 3_600_000);
  const waiting = assert.rejects(queue.pushAndWait('x', { timeout: 500 }), WaitTimeout);
  hours = -1;
  await waiting;
  hours = 1;
  assert.ok(worker.isHealthy());
});

test('a signal may have many listeners', async (t) => {
  const warnings = [];
  const warned = (warning) => warnings.push(warning.name);
  process.on('warning', warned);
  t.after(() => process.off('warning', warned));
  const { queue } = await working(t, (_, { signal }) => {
    for (let n = 0; n < 20; n += 1) signal.addEventListener('abort', () => {});
  });
  await queue.push('x');
  await eventually('it is done', async () => (await queue.info()).acked === 1);
  assert.deepEqual(warnings, []);
});

test('a worker that is closed is not waited for', async () => {
  const worker = new Worker('q', () => {}, { connection: 'redis://127.0.0.1:1' });
  worker.on('error', () => {});
  const waiting = assert.rejects(worker.waitUntilReady(), /closed/);
  await worker.close();
  await waiting;
  await assert.rejects(worker.waitUntilReady(), /closed/);
});

test('a process ends when all its workers are closed', async (t) => {
  const program = file(
    t,
    `import { closeOnSignals } from 'dq-client';
     const logged = (name, done) => { console.log(name); done(); };
     const log = (name, ms) => ({ close: () => new Promise((done) => setTimeout(() => logged(name, done), ms)) });
     closeOnSignals(log('first', 0));
     closeOnSignals(log('second', 300));
     setTimeout(() => process.kill(process.pid, 'SIGTERM'), 50);
     setTimeout(() => {}, 5000);`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  assert.equal(stdout, 'first\nsecond\n');
});

test('a preload that makes a worker makes none in its threads', async (t) => {
  const server = await Server.start(t);
  const preload = file(
    t,
    `console.log(require('node:worker_threads').threadId);
     const { Worker } = require('dq-client');
     const worker = new Worker('q', () => {}, { connection: '${server.url}' });
     worker.on('ready', () => worker.close());`,
    'preload.cjs',
  );
  const env = { ...process.env, NODE_OPTIONS: `-r ${preload}` };
  for (const [words, options] of [
    [['-r', preload], {}],
    [[], { env }],
  ]) {
    const { stdout } = await promisify(execFile)(process.execPath, [...words, '-e', '0'], options);
    assert.equal(stdout, '0\n');
  }
});

test('very many messages fit into one call', async (t) => {
  const server = await Server.start(t);
  const redis = new Redis({ port: server.port, stringNumbers: true });
  t.after(() => redis.disconnect());
  for (const connection of [server.url, redis]) {
    const queue = new Queue('q', { connection });
    await queue.purge();
    assert.equal((await queue.pushMany(Array(130_000).fill('x'))).length, 130_000);
    const ids = Array.from({ length: 70_000 }, (_, n) => `id-${n}`);
    await queue.pushMany(ids, { ids, dead: true });
    assert.equal(await queue.redrive({ ids }), 70_000);
    await queue.purge({ states: ['ready', 'dead'] });
    assert.equal((await queue.info()).ready, 0);
    await queue.close();
  }
});

test('jobs of which one is wrong are not added', async (t) => {
  const server = await Server.start(t);
  const queue = new Queue('q', { connection: server.url });
  for (const opts of [{ delay: -1 }, { priority: 200 }, { lease: -1 }, { ttl: 0.5 }]) {
    const jobs = [
      { name: 'a', data: 1 },
      { name: 'b', data: 2, opts },
    ];
    await assert.rejects(queue.addBulk(jobs), TypeError);
  }
  assert.equal(await queue.info(), null);
  await queue.close();
});

test('a checkpoint waits until the server can store it', async (t) => {
  const { server, queue } = await working(t, async (job, { signal }) => {
    await server.do('REPLICAOF', '127.0.0.1', '1');
    job.save('half');
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  await queue.push('x', { id: 'm' });
  await eventually('it was refused', async () => /READONLY/.test(await server.admin.info('errorstats')));
  await server.do('REPLICAOF', 'NO', 'ONE');
  await eventually('it is stored', async () => (await queue.get('m')).checkpoint?.toString() === 'half');
});

test('errors show nothing of a payload', async (t) => {
  const server = await Server.start(t);
  const queue = new Queue('q', { connection: server.url });
  t.after(() => queue.close());
  await queue.push('1');
  await server.do('CONFIG', 'SET', 'maxmemory', '1');
  const wrong = [
    () => queue.push({ card: '4711' }),
    () => queue.add('pay', new Map([['card', '4711']])),
    () => new Queue('q', { connection: server.url, pushTimeout: 0 }).push('4711'),
  ];
  for (const push of wrong) {
    await assert.rejects(push, (error) => {
      assert.doesNotMatch(inspect(error, { depth: 9 }), /4711/);
      return true;
    });
  }
});
