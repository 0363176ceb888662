// Clusters, Sentinels, and networks that fail.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, Worker } from 'dq-client';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { eventually, freePort, run, Server } from './server.mjs';

/** Adds a job, has it done by a worker, and has a message taken from the worker. */
async function use(t, name, connection) {
  const queue = new Queue(name, { connection });
  const worker = new Worker(name, (job) => (job.data ? job.data * 2 : new Promise(() => {})), { connection, grace: 0 });
  worker.on('error', () => {});
  t.after(() => Promise.all([worker.close(), queue.close()]));
  assert.equal(await queue.addAndWait('double', 4, { timeout: 10_000 }), 8);
  await worker.waitUntilReady();
  const lost = once(worker, 'lost');
  await queue.add('wait', 0, { id: 'm' });
  await eventually('it is held', async () => (await queue.len('inflight')) === 1);
  await queue.cancel('m');
  assert.equal((await lost)[1], 'cancelled');
}

test('queues and workers find the node of a cluster', async (t) => {
  const nodes = await Promise.all([0, 1].map(() => Server.start(t, '--cluster-enabled', 'yes')));
  const [first, second] = nodes;
  await first.do('CLUSTER', 'MEET', '127.0.0.1', second.port);
  await first.do('CLUSTER', 'ADDSLOTSRANGE', 0, 8191);
  await second.do('CLUSTER', 'ADDSLOTSRANGE', 8192, 16383);
  for (const node of nodes) {
    await eventually('it is one cluster', async () => {
      const info = await node.do('CLUSTER', 'INFO');
      return /state:ok/.test(info) && /known_nodes:2/.test(info);
    });
  }
  const startup = [{ host: '127.0.0.1', port: first.port }];
  const io = new Cluster(startup);
  const rootNodes = [{ url: first.url }];
  // Version 5 of node-redis hides the options of its cluster, which a worker needs.
  const node = createCluster({ rootNodes }).on('error', () => {});
  await node.connect();
  t.after(() => {
    io.disconnect();
    node.destroy();
  });
  // The slots of these names are on different nodes.
  for (const name of ['b', 'a']) {
    for (const [client, connection] of Object.entries({ io, options: { rootNodes }, ...(node._options && { node }) })) {
      await use(t, `{${name}}${client}`, connection);
    }
  }
  assert.ok((await second.do('DBSIZE')) > 0 && (await first.do('DBSIZE')) > 0);
  // While the slot of a queue moves, the queue is found on the new node.
  const slot = await first.do('CLUSTER', 'KEYSLOT', 'b');
  await second.do('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await first.do('CLUSTER', 'MYID'));
  await first.do('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await second.do('CLUSTER', 'MYID'));
  const moved = new Queue('{b}moved', { connection: { rootNodes } });
  t.after(() => moved.close());
  await moved.push('x');
  assert.equal(await moved.len(), 1);
  assert.match(await first.do('CLUSTER', 'GETKEYSINSLOT', slot, 9).then(String), /^(?!.*moved)/);
});

test('queues and workers find the master that Sentinels name', async (t) => {
  const server = await Server.start(t);
  const port = await freePort();
  const file = path.join(server.directory, 'sentinel.conf');
  writeFileSync(file, '');
  await run(t, [file, '--sentinel', '--port', port, '--bind', '127.0.0.1'], server.directory);
  const sentinel = new Redis({ port, retryStrategy: () => 20, maxRetriesPerRequest: null }).on('error', () => {});
  t.after(() => sentinel.disconnect());
  await eventually('it watches', () => sentinel.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', server.port, 1));
  const sentinels = [{ host: '127.0.0.1', port }];
  await use(t, 'io', { sentinels, name: 'main' });
  await use(t, 'node', { name: 'main', sentinelRootNodes: sentinels });
});

test('a master that lives on is left when Sentinels name another', async (t) => {
  const server = await Server.start(t);
  const replica = await Server.start(t, '--replicaof', '127.0.0.1', server.port, '--repl-diskless-sync-delay', 0);
  const port = await freePort();
  const file = path.join(server.directory, 'sentinel.conf');
  writeFileSync(file, `sentinel monitor main 127.0.0.1 ${server.port} 1\nsentinel failover-timeout main 2000\n`);
  await run(t, [file, '--sentinel', '--port', port, '--bind', '127.0.0.1'], server.directory);
  const options = { port, retryStrategy: () => 20, maxRetriesPerRequest: null };
  const [sentinel, listener] = [0, 1].map(() => new Redis(options).on('error', () => {}));
  t.after(() => [sentinel, listener].map((each) => each.disconnect()));
  await eventually('it has the data', async () => /link_status:up/.test(await replica.admin.info('replication')));
  await eventually(
    'it knows the replica',
    async () => (await sentinel.call('SENTINEL', 'REPLICAS', 'main')).length > 0,
    20_000,
  );
  const sentinels = [{ host: '127.0.0.1', port }];
  const connections = [
    { sentinels, name: 'main' },
    { name: 'main', sentinelRootNodes: sentinels },
  ];
  const queues = connections.map((connection) => new Queue('q', { connection }));
  t.after(() => Promise.all(queues.map((queue) => queue.close())));
  for (const queue of queues) await queue.push('before');
  let isNamed = false;
  listener.on('message', () => {
    isNamed = true;
  });
  await listener.subscribe('+switch-master');
  // It needs to know the replica well enough.
  await eventually('it can fail over', () => sentinel.call('SENTINEL', 'FAILOVER', 'main').catch(() => false), 20_000);
  await eventually('another is named', () => isNamed, 20_000);
  await sleep(300); // The clients have to hear of it, too.
  for (const queue of queues) {
    const id = await queue.push('after');
    assert.ok((await replica.message('q', id)).id, 'the old master would have taken it, and lost it');
  }
});

test('calls settle while the server is away, and name it', async (t) => {
  const port = await freePort();
  const io = new Redis({ port }).on('error', () => {});
  const node = createClient({ url: `redis://127.0.0.1:${port}` }).on('error', () => {});
  node.connect().catch(() => {});
  t.after(() => {
    io.disconnect();
    node.destroy();
  });
  for (const connection of [`redis://127.0.0.1:${port}`, { url: `redis://127.0.0.1:${port}` }, io, node]) {
    const queue = new Queue('q', { connection, pushTimeout: 500 });
    for (const call of [() => queue.push('x'), () => queue.len(), () => queue.add('n', 0)]) {
      await assert.rejects(call, (error) => {
        assert.equal(error.name, 'ConnectionLost');
        assert.match(error.message, new RegExp(`:${port}`));
        return true;
      });
    }
    await queue.close();
  }
});

test('a closed queue settles what waits for the server', async () => {
  const connection = `redis://127.0.0.1:${await freePort()}`;
  const queue = new Queue('q', { connection, pushTimeout: Number.POSITIVE_INFINITY });
  const waiting = assert.rejects(queue.push('x'), /this queue is closed/);
  await queue.close();
  await waiting;
  await assert.rejects(queue.len(), /this queue is closed/);
});

test('a wrong password or database is refused at once, by both clients', async (t) => {
  const server = await Server.start(t, '--databases', 2);
  await server.do('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '&*', '+@all', '-select');
  const at = `127.0.0.1:${server.port}`;
  const given = new Redis({ port: server.port, db: 99 }).on('error', () => {});
  t.after(() => given.disconnect());
  const refused = [
    [/WRONGPASS/, `redis://x:y@${at}`, { url: `redis://x:y@${at}` }],
    [/index is out of range/, `redis://${at}/99`, { url: `redis://${at}/99` }, given],
    [/NOPERM/, `redis://narrow:secret@${at}/1`, { url: `redis://narrow:secret@${at}/1` }],
  ];
  for (const [message, ...connections] of refused) {
    for (const connection of connections) {
      const queue = new Queue('q', { connection, pushTimeout: 60_000 });
      await assert.rejects(queue.push('x'), { name: 'Refused', message });
      await assert.rejects(queue.len(), { name: 'Refused', message });
      await queue.close();
      const worker = new Worker('q', () => {}, { connection });
      t.after(() => worker.close());
      assert.match((await once(worker, 'error'))[0].message, message);
      await worker.close();
    }
  }
  assert.equal(await server.do('DBSIZE'), 0);
});

test('a client of ioredis with automatic pipelines works', async (t) => {
  const server = await Server.start(t);
  const redis = new Redis({ port: server.port, enableAutoPipelining: true });
  t.after(() => redis.disconnect());
  await use(t, 'q', redis);
  await use(t, 'r', { port: server.port, enableAutoPipelining: true });
});

test('a server without HELLO is worked for and left', async (t) => {
  const server = await Server.start(t, '--rename-command', 'HELLO', '');
  await use(t, 'q', `${server.url}?protocol=2`);
  // Version 5 of node-redis sends HELLO if a protocol is given, but not by default.
  const isOld = !createCluster({ rootNodes: [] })._options;
  await use(t, 'r', { url: server.url, ...(!isOld && { RESP: 2 }) });
});

test('a push whose answer is lost is made once, with clients that exist too', async (t) => {
  const server = await Server.start(t);
  const { port, cut } = await proxy(t, server.port);
  const redis = new Redis({ port });
  redis.on('error', () => {});
  t.after(() => redis.disconnect());
  for (const connection of [`redis://127.0.0.1:${port}`, redis]) {
    const queue = new Queue('q', { connection });
    t.after(() => queue.close());
    await queue.push('warm');
    const before = Number((await queue.info()).pushed);
    cut();
    assert.match(await queue.push('x'), /^[0-9a-f-]{36}$/);
    assert.equal((await queue.info()).pushed, before + 1);
    const unrepeated = new Queue('q', { connection: `redis://127.0.0.1:${port}`, pushTimeout: 0 });
    t.after(() => unrepeated.close());
    await unrepeated.push('warm');
    cut();
    await assert.rejects(unrepeated.push('x'), { name: 'ConnectionLost' });
  }
});

/** A network that loses the next answer after `cut`. */
async function proxy(t, target) {
  let losing = false;
  const listener = createServer((client) => {
    const server = connect(target, '127.0.0.1');
    const close = () => [client, server].map((end) => end.destroy());
    for (const end of [client, server]) end.on('error', close).on('close', close);
    client.pipe(server);
    server.on('data', (answer) => {
      if (losing) {
        losing = false;
        close();
      } else client.write(answer);
    });
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => listener.close());
  return {
    port: listener.address().port,
    cut: () => {
      losing = true;
    },
  };
}
