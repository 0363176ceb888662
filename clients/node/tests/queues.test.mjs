// What producers and operators do with queues, through each client and protocol.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import {
  ConnectionLost,
  DeadId,
  DqError,
  JobFailed,
  NotKept,
  OutOfMemory,
  Queue,
  QueueClosed,
  QueueFull,
  Refused,
  TooLarge,
  WaitTimeout,
  Worker,
} from 'dq-client';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { eventually, freePort, run, Server } from './server.mjs';

/** Opens a queue that is closed when the test ends. */
function open(t, server, name = 'q', options = {}) {
  const queue = new Queue(name, { connection: server.url, ...options });
  t.after(() => queue.close());
  return queue;
}

const CONNECTIONS = {
  'a URL': ({ url }) => url,
  'a URL with RESP2': ({ url }) => `${url}?protocol=2`,
  'a unix socket': ({ socket }) => `unix://${socket}`,
  'options of ioredis': ({ port }) => ({ host: '127.0.0.1', port }),
  'options of node-redis': ({ url }) => ({ url }),
  'a client of ioredis': ({ port }, t) => {
    const redis = new Redis({ port, replyMapping: 'resp3' });
    t.after(() => redis.disconnect());
    return redis;
  },
  'a client of ioredis with stringNumbers': async ({ port }, t) => {
    const redis = new Redis({ port, stringNumbers: true });
    t.after(() => redis.disconnect());
    return redis;
  },
  'a client of node-redis': async ({ url }, t) => {
    const client = await createClient({ url })
      .on('error', () => {})
      .connect();
    t.after(() => client.destroy());
    return client;
  },
  'a client of node-redis with RESP2': async ({ url }, t) => {
    const client = await createClient({ url, RESP: 2 })
      .on('error', () => {})
      .connect();
    t.after(() => client.destroy());
    return client;
  },
};

for (const [name, connect] of Object.entries(CONNECTIONS)) {
  test(`a queue and a worker use ${name}`, async (t) => {
    const server = await Server.start(t);
    const connection = await connect(server, t);
    const key = name.includes('node-redis') ? 'q\u{1f388}' : 'q\u{1f388}\udcff';
    const queue = open(t, server, key, { connection });
    const { id } = await queue.add('sum', [1, 2], {
      headers: { tenant: 'ü' },
      group: 'g',
      id: 'a\udc80',
      retain: 9999,
      batch: 'b',
    });
    assert.equal(id, 'a\udc80');
    const found = await queue.get(id);
    assert.deepEqual([found.state, found.headers, found.group, found.priority], ['ready', { tenant: 'ü' }, 'g', 0]);
    assert.equal((await queue.info()).batches, 1);
    assert.equal(found.payload.toString(), '{"name":"sum","data":[1,2]}');
    assert.equal((await queue.info()).ready, 1);
    const seen = [];
    const work = (job, { signal }) => {
      seen.push([job.name, job.data, job.headers.tenant, job.id, job.attempt, signal.aborted]);
      return job.data.reduce((sum, n) => sum + n, 0);
    };
    const worker = new Worker(key, work, { connection, lease: 5000 });
    t.after(() => worker.close());
    assert.equal(await queue.addAndWait('sum', [2, 3], { timeout: 5000 }), 5);
    assert.deepEqual(seen, [
      ['sum', [1, 2], 'ü', 'a\udc80', 1, false],
      ['sum', [2, 3], undefined, seen[1][3], 1, false],
    ]);
    await worker.close();
    const slow = new Worker(key, () => new Promise(() => {}), { connection, grace: 0 });
    t.after(() => slow.close());
    const lost = new Promise((resolve) => slow.on('lost', (job, reason) => resolve([job.id, reason])));
    await slow.waitUntilReady();
    await queue.push('x', { id: 'taken' });
    await eventually('it is taken', async () => (await queue.len('inflight')) === 1);
    assert.deepEqual(await queue.cancel('taken', 'none'), ['inflight', null]);
    assert.deepEqual(await lost, ['taken', 'cancelled']);
  });
}

test('every option of a push arrives', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  const at = new Date(Date.now() + 60_000);
  const options = { id: 'm', at, priority: -3, attempts: 4, lease: 5000, ttl: 90_000, group: 'g', headers: { a: 'ü' } };
  assert.equal(await queue.push('x', options), 'm');
  const found = await queue.get('m');
  assert.deepEqual(
    [found.due, found.priority, found.retries, found.lease, found.ttl, found.group, found.headers],
    [at.getTime(), -3, 3, 5000, 90_000, 'g', { a: 'ü' }],
  );
  assert.equal(await queue.push('y', { id: 'm', replace: true, delay: 5, maxWait: 10, later: true }), 'm');
  assert.equal(await queue.push('y', { id: 'm' }), null);
  assert.deepEqual(await queue.pushMany(['1', '2'], { ids: ['m', 'n'] }), [null, 'n']);
  const bytes = Buffer.from([0, 255, 10]);
  assert.deepEqual((await queue.get(await queue.push(bytes, { attempts: Number.POSITIVE_INFINITY }))).payload, bytes);
});

test('jobs are added in bulk with their own options', async (t) => {
  const queue = open(t, await Server.start(t));
  const jobs = ['a', 'b', 'a'].map((id, n) => ({ name: 'n', data: n, opts: { id, delay: n === 1 ? 60_000 : 0 } }));
  const added = await queue.addBulk([...jobs, { name: 'n', data: 3 }]);
  assert.deepEqual(
    added.map(({ data, duplicate }) => [data, duplicate]),
    [
      [0, false],
      [1, false],
      [2, true],
      [3, false],
    ],
  );
  assert.equal(await queue.len('delayed'), 1);
  assert.equal((await queue.add('n', 0, { id: 'a' })).duplicate, true);
});

test('options that mean nothing are refused with what to use instead', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await assert.rejects(queue.add('n', 0, { jobId: 'x' }), /jobId means nothing here: give id/);
  await assert.rejects(queue.add('n', 0, { removeOnComplete: true }), /retain/);
  await assert.rejects(queue.add('n', 0, { prioriti: 1 }), /no option prioriti; the options are at, attempt, attempts/);
  await assert.rejects(queue.add('n', 0, { attempts: 0 }), /at least 1/);
  await assert.rejects(queue.push('x', { delay: '5' }), /delay must be a whole number, but is "5"/);
  assert.throws(() => new Worker('q', () => {}, { connection: server.url, lockDuration: 5 }), /give lease/);
  assert.throws(() => new Worker('q', () => {}, { connection: server.url, concurrency: 0 }), /at least 1/);
  assert.throws(() => new Queue('q', { connection: server.url, prefix: 'bull' }), /prefix/);
  assert.throws(() => new Queue('q', {}), /connection is missing/);
  assert.throws(() => new Queue('q', { connection: 'http://localhost' }), /redis:\/\//);
  assert.equal(await queue.len(), 0);
});

test('values that mean nothing are refused by name', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  const pushes = {
    priority: [0.5, '1', true],
    id: [5, {}],
    headers: [new Map([['a', 'b']]), ['a'], 'a', { a: 5 }],
    attempts: [1.5, '3', Number.NaN],
    replace: ['no', 1],
    at: [new Date('tomorrow'), '2030-01-01', 1_700_000_000, 0, -5],
  };
  for (const [name, values] of Object.entries(pushes)) {
    for (const value of values) {
      const named = new RegExp(name === 'headers' ? 'header' : name);
      await assert.rejects(queue.push('x', { [name]: value }), { name: 'TypeError', message: named }, name);
    }
  }
  const settings = {
    maxLen: [0.4, '5'],
    backoff: [1000, [1000], [1, 2, 3], ['1', '2']],
    rate: [5],
    forward: [5],
    groupOrder: [5],
  };
  for (const [name, values] of Object.entries(settings)) {
    for (const value of values) {
      await assert.rejects(queue.declare({ [name]: value }), {
        name: 'TypeError',
        message: new RegExp(`^${name} must`),
      });
    }
  }
  await assert.rejects(
    queue.declare({ backoff: 1000 }),
    /backoff must be two whole numbers, \[first, second\], but is 1000/,
  );
  await assert.rejects(queue.promote({ until: 1_700_000_000 }), /until must be .* not seconds, but is 1700000000/);
  await assert.rejects(queue.add(5, 0), /the name of a job must be a text/);
  await assert.rejects(queue.add('n', new Set([1])), /the data of a job cannot be written as JSON: it is Set/);
  await assert.rejects(queue.push({ name: 'n' }), /the payload must be a text or bytes/);
  await assert.rejects(queue.cancel(['a']), /an id must be a text or bytes, but is Array/);
  await assert.rejects(queue.schedule('s', { name: 'n', data: 1, opts: {} }, { every: 60_000 }), /no option opts/);
  await assert.rejects(queue.pause('5'), /duration must be a whole number/);
  await assert.rejects(queue.pause(5, { groups: 'g' }), /no option groups/);
  await assert.rejects(queue.pause(5, { group: undefined }), /group must be a text or bytes, but is undefined/);
  await assert.rejects(queue.pushAndWait('x', {}), /timeout must be/);
  assert.throws(() => open(t, server, 'q', { pushTimeout: '5' }), /pushTimeout must be a whole number/);
  for (const name of ['concurrency', 'lease', 'timeLimit', 'grace', 'name']) {
    assert.throws(
      () => new Worker('q', () => {}, { connection: server.url, [name]: {} }),
      new RegExp(`^TypeError: ${name}`),
    );
  }
  assert.equal(await queue.info(), null);
});

test('one bad job of many adds none', async (t) => {
  const queue = open(t, await Server.start(t));
  const bad = [
    { name: 'n', data: 1n },
    { name: 'n', data: 0, opts: { delay: 0.5 } },
    { name: 'n', data: 0, delay: 5 },
  ];
  for (const job of bad) await assert.rejects(queue.addBulk([{ name: 'n', data: 0 }, job]), TypeError);
  assert.equal(await queue.len(), 0);
  await queue.addBulk([null, Number.POSITIVE_INFINITY].map((attempts) => ({ name: 'n', data: 0, opts: { attempts } })));
  const retries = (await queue.peek({ count: 2 })).map((message) => message.retries);
  assert.deepEqual(retries.sort(), [-1, 16].sort());
});

test('URLs that are not understood are refused by name', () => {
  const urls = {
    'redis://localhost/abc': /the database must be a number of 0 or more, but is abc/,
    'redis://localhost/-1': /the database must/,
    'redis://localhost/1/2': /the database must/,
    'unix:///tmp/s?db=x': /the database must/,
    'redis://localhost?family=6': /the URL has a parameter family/,
    'redis://localhost?keyPrefix=a': /parameter keyPrefix: known are db and protocol/,
    'rediss://localhost?tls=false': /parameter tls/,
    'redis://localhost?protocol=4': /protocol must be 2 or 3, but is 4/,
  };
  for (const [connection, message] of Object.entries(urls)) {
    assert.throws(() => new Queue('q', { connection }), message, connection);
    assert.throws(() => new Worker('q', () => {}, { connection }), message, connection);
  }
  assert.throws(() => new Queue('q', { connection: { host: 'localhost', db: 'abc' } }), /the database must/);
  assert.throws(() => new Queue('q', { connection: { url: 'redis://localhost/abc' } }), /the database must/);
});

test('messages are changed and looked at', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await queue.pushMany(['1', '2', '3'], { ids: ['a', 'b', 'c'], delay: 60_000 });
  assert.equal(await queue.reschedule('a', { delay: 0, priority: 2 }), true);
  assert.equal(await queue.reschedule('none', { delay: 0 }), false);
  assert.equal(await queue.promote({ count: 1 }), 1);
  assert.deepEqual(
    (await queue.peek({ count: 5 })).map(({ id }) => id),
    ['a', 'b'],
  );
  assert.deepEqual([await queue.len(), await queue.len('ready'), await queue.len('delayed')], [3, 2, 1]);
  await queue.pause();
  assert.equal((await queue.info()).paused, 1);
  await queue.resume();
  assert.equal((await queue.info()).paused, 0);
  assert.equal(await queue.purge({ states: ['delayed'] }), 1);
  assert.equal(await queue.schedule('hourly', { name: 'n', data: 1 }, { every: 3_600_000, times: 3 }), 'created');
  assert.equal(await queue.schedule('hourly', Buffer.from('x'), { cron: '0 3 * * *', tz: 'Europe/Berlin' }), 'changed');
  assert.equal((await queue.get('hourly')).tz, 'Europe/Berlin');
  assert.equal(await queue.purge({ recurring: true }), 3);
  assert.equal(await queue.get('hourly'), null);
  assert.equal(await open(t, server, 'none').info(), null);
});

test('a date before 1973 is in the past as any other', async (t) => {
  const queue = open(t, await Server.start(t));
  for (const [id, at] of Object.entries({ epoch: new Date(0), earlier: new Date(-1e12) })) {
    await queue.push('x', { id, at });
    assert.equal((await queue.get(id)).state, 'ready');
  }
  await queue.push('x', { id: 'later', delay: 60_000 });
  assert.equal(await queue.promote({ until: new Date(0) }), 0);
  assert.equal(await queue.reschedule('later', { at: new Date(0) }), true);
  assert.equal(await queue.len('ready'), 3);
});

test('a sentence says that the server has no module', async (t) => {
  const port = await freePort();
  const directory = mkdtempSync(path.join(tmpdir(), 'dq-node-'));
  await run(t, ['--port', port, '--bind', '127.0.0.1', '--dir', directory, '--save', ''], directory);
  const queue = open(t, { url: `redis://127.0.0.1:${port}` });
  await assert.rejects(queue.push('secret'), (error) => {
    assert.equal(error.message, 'the server has not loaded the module dq');
    assert.doesNotMatch(inspect(error, { depth: 9 }), /secret/);
    return error.name === 'Refused';
  });
});

test('messages are chosen by age, by reason or by due time', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await queue.push('x', { id: 'm', delay: 60_000 });
  const now = Date.now();
  assert.equal(await queue.promote({ until: now }), 0);
  assert.equal(await queue.promote({ until: new Date(now + 3_600_000) }), 1);
  assert.equal(await queue.purge({ states: ['ready'], older: 3_600_000 }), 0);
  await server.do('DQ.BURY', 'q', 'm');
  assert.equal(await queue.redrive({ reason: 'expired' }), 0);
  assert.equal(await queue.redrive({ older: 3_600_000 }), 0);
  assert.equal(await queue.redrive({ count: 5, reason: 'rejected', older: 0, delay: 60_000 }), 1);
  assert.equal(await queue.purge({ older: 0 }), 1);
  await assert.rejects(queue.redrive({ olderThan: 5 }), /no option olderThan; the options are count, delay, older/);
});

test('a closed queue refuses jobs until it is resumed', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await queue.push('x');
  await queue.pause(60_000, 'in');
  const { paused, closed } = await queue.info();
  assert.deepEqual([paused, closed], [0, 1]);
  await assert.rejects(queue.push('x'), QueueClosed);
  await queue.resume('out');
  await assert.rejects(queue.add('n', 0), QueueClosed);
  await queue.resume();
  await queue.push('x');
});

test('a group is looked at, paused and resumed', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await queue.push('x', { group: 'g' });
  await queue.push('x');
  assert.deepEqual([await queue.len('ready', { group: 'g' }), await queue.len()], [1, 2]);
  await queue.pause(60_000, { group: 'g' });
  assert.deepEqual([(await queue.info()).blocked, (await queue.info()).paused], [1, 0]);
  await queue.resume();
  assert.equal((await queue.info()).blocked, 1);
  await queue.resume({ group: 'g' });
  assert.equal((await queue.info()).blocked, 0);
});

test('a message follows when all of a batch have ended', async (t) => {
  const server = await Server.start(t);
  const push = (_, headers) => {
    headers.on = 'push';
  };
  const queue = open(t, server, 'q', { middleware: [{ push }] });
  await queue.pushMany(['1', '2'], { ids: ['a', 'b'], batch: 'pages' });
  const given = { id: 'after', delay: 60_000, priority: 3, attempts: 2, lease: 7000, group: 'g' };
  const job = { name: 'index', data: [1] };
  assert.equal(await queue.follow('pages', job, { ...given, headers: { h: '1' } }), 2);
  await queue.cancel('a', 'b');
  const { payload, priority, retries, lease, group, headers, state } = await queue.get('after');
  assert.equal(payload.toString(), '{"name":"index","data":[1]}');
  assert.deepEqual([priority, retries, lease, group, state], [3, 1, 7000, 'g', 'delayed']);
  assert.deepEqual([headers.h, headers.on, headers['dq-batch-cancelled']], ['1', 'push', '2']);
  await assert.rejects(queue.follow('pages', 'x', { ttl: 5 }), /no option ttl/);
});

test('a batch is looked at and cancelled', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await queue.pushMany(['1', '2'], { batch: 'pages' });
  const { total, left, closed } = await queue.batchInfo('pages');
  assert.deepEqual([total, left, closed], [2, 2, 0]);
  await queue.follow('pages', Buffer.from([255]), { id: 'bind' });
  const { then, 'then-id': id } = await queue.batchInfo('pages');
  assert.deepEqual([then, id], [Buffer.from([255]), 'bind']);
  assert.equal(await queue.cancelBatch('pages'), 2);
  assert.equal(await queue.batchInfo('pages'), null);
});

test('what the server refuses has a class', async (t) => {
  const server = await Server.start(t);
  await server.do('DQ.CREATE', 'full', 'MAXLEN', '1');
  await server.do('DQ.CREATE', 'small', 'MAXPAYLOAD', '1');
  const full = open(t, server, 'full');
  await full.push('x');
  await assert.rejects(full.push('x'), QueueFull);
  await assert.rejects(open(t, server, 'small').push('xy'), TooLarge);
  const queue = open(t, server);
  await queue.push('x', { id: 'dead' });
  await server.do('DQ.BURY', 'q', 'dead');
  await assert.rejects(queue.push('x', { id: 'dead' }), DeadId);
  const [dead, live] = await queue.pushMany(['1', '2'], { ids: ['dead', 'live'] });
  assert.ok(dead instanceof DeadId && dead instanceof Refused && dead instanceof DqError);
  assert.equal(live, 'live');
  assert.equal(await queue.redrive({ ids: ['dead'] }), 1);
  await server.do('SET', 'text', 'x');
  await assert.rejects(open(t, server, 'text').len(), { name: 'Refused', code: 'WRONGTYPE' });
  await server.do('CONFIG', 'SET', 'maxmemory', '1');
  await assert.rejects(queue.push('x'), OutOfMemory);
});

test('a caller waits for a result, a failure, or in vain', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await assert.rejects(queue.pushAndWait('x', { timeout: 50 }), WaitTimeout);
  await queue.purge();
  const work = ({ name }) => {
    if (name === 'throw') throw new RangeError('no such page');
    return name === 'bytes' ? Buffer.from([255]) : undefined;
  };
  const worker = new Worker('q', work, { connection: server.url });
  t.after(() => worker.close());
  const options = { timeout: 5000, attempts: 1 };
  await assert.rejects(queue.addAndWait('throw', 0, options), (error) => {
    return error instanceof JobFailed && error.message.startsWith('RangeError: no such page\n    at work');
  });
  assert.deepEqual(await queue.pushAndWait('{"name": "bytes"}', options), Buffer.from([255]));
  assert.equal(await queue.addAndWait('nothing', 0, options), undefined);
  const waiting = queue.pushAndWait('x', { ...options, id: 'm', delay: 60_000 });
  await eventually('it waits', async () => (await queue.info())['waiting-clients'] === 2);
  await queue.cancel('m');
  await assert.rejects(waiting, NotKept);
});

test('a text that a job returns comes back as this text', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  const worker = new Worker('q', (job) => (job.payload.length > 3 ? job.data : '123'), { connection: server.url });
  t.after(() => worker.close());
  for (const value of ['123', 'null', '"', '', 'ü', '[1]', 123, null, [1], { a: '1' }]) {
    assert.deepEqual(await queue.addAndWait('n', value, { timeout: 5000 }), value);
  }
  assert.equal(String(await queue.pushAndWait('x', { timeout: 5000 })), '123');
});

test('a caller is told that a result could not be kept', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  const values = { bigint: 1n, set: new Set([1]), long: 'x'.repeat(65_537), function: () => {}, nothing: undefined };
  const errors = [];
  const worker = new Worker('q', (job) => values[job.name], { connection: server.url });
  worker.on('error', (error) => errors.push(error.message));
  t.after(() => worker.close());
  for (const name of ['bigint', 'set', 'long', 'function']) {
    const waiting = queue.addAndWait(name, 0, { timeout: 5000, id: name });
    await assert.rejects(waiting, { name: 'NotKept', message: /its result is not kept/ }, name);
    assert.deepEqual([(await queue.get(name)).state, (await queue.get(name)).attempt], ['done', 1]);
  }
  await assert.rejects(queue.pushAndWait('{"name": "long"}', { timeout: 5000 }), { name: 'NotKept' });
  assert.equal(await queue.addAndWait('nothing', 0, { timeout: 5000 }), undefined);
  assert.equal(errors.length, 1);
  assert.match(errors[0], /q: message "bigint".* at attempt 1 is completed without its result: .*BigInt/);
});

test('the key prefix of a client is part of the key', async (t) => {
  const server = await Server.start(t);
  const redis = new Redis({ port: server.port, keyPrefix: 'app:' });
  t.after(() => redis.disconnect());
  const queue = open(t, server, 'q', { connection: redis });
  await queue.push('x', { id: 'm' });
  assert.equal((await server.message('app:q', 'm')).state, 'ready');
  const worker = new Worker('q', () => {}, { connection: redis });
  t.after(() => worker.close());
  await eventually('it is done', async () => (await queue.len()) === 0);
});

test('a queue is declared, created and altered', async (t) => {
  const server = await Server.start(t);
  const queue = open(t, server);
  await queue.declare({ jitter: 20, backoff: [500, 60_000], groupRate: [5, 1000], forward: 'STREAM due TRIM 9' });
  const info = await queue.info();
  assert.deepEqual([info['backoff-base'], info['backoff-max'], info['backoff-jitter']], [500, 60_000, 20]);
  assert.deepEqual([info.grouprate, info['grouprate-period'], info.forward], [5, 1000, 'STREAM due TRIM 9']);
  await assert.rejects(queue.create({ maxLen: 1 }), Refused);
  await assert.rejects(open(t, server, 'none').alter({ maxLen: 1 }), Refused);
  await assert.rejects(queue.alter({ maxlen: 1 }), /there is no option maxlen/);
  await queue.alter({ forward: 'NONE' });
  assert.equal((await queue.info()).forward, 'NONE');
});

test('a push that your own client may still send may have run', async (t) => {
  const redis = new Redis(await freePort(), { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  t.after(() => redis.disconnect());
  const queue = new Queue('q', { connection: redis, pushTimeout: 300 });
  const error = await queue.push('x').catch((rejected) => rejected);
  assert.ok(error instanceof ConnectionLost);
  assert.equal(error.mayHaveRun, true);
});

test('fields that do not exist do not compile', () => {
  const compiler = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript')), 'tsc.js');
  const directory = fileURLToPath(new URL('.', import.meta.url));
  execFileSync(process.execPath, [compiler, '-p', directory], { encoding: 'utf8', stdio: 'pipe' });
});

test('a worker without a handler is refused', () => {
  const make = (handler) => new Worker('q', handler, { connection: 'redis://localhost' });
  for (const handler of [undefined, null, {}]) assert.throws(() => make(handler), /a worker needs a handler/);
});

test('messages are counted and shown by a state, or by options with one', async (t) => {
  const queue = open(t, await Server.start(t));
  await queue.push('x', { dead: true });
  for (const which of ['dead', { state: 'dead' }]) {
    assert.equal(await queue.len(which), 1);
    assert.equal((await queue.peek(which)).length, 1);
  }
});
