// Clients that were given, and networks that lose replies.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { Queue } from 'dq-client';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { eventually, Server } from './server.mjs';

/** Starts a proxy that can cut a connection instead of passing on the reply to a word. */
async function losing(t) {
  const proxy = { lost: undefined, target: 0 };
  const listener = createServer((client) => {
    const server = connect(proxy.target, '127.0.0.1');
    const cut = () => [client, server].forEach((end) => void end.destroy());
    let isLosing = false;
    client.on('data', (data) => {
      if (proxy.lost && data.includes(proxy.lost)) {
        isLosing = true;
        proxy.lost = undefined;
      }
      server.write(data);
    });
    server.on('data', (data) => (isLosing ? cut() : client.write(data)));
    for (const end of [client, server]) end.on('error', cut).on('close', cut);
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  proxy.port = listener.address().port;
  t.after(() => listener.close());
  return proxy;
}

/** Starts a cluster of one node, which names the port of a proxy as its own. */
async function cluster(t, proxy) {
  const announced = ['--cluster-announce-ip', '127.0.0.1', '--cluster-announce-port', proxy.port];
  const node = await Server.start(t, '--cluster-enabled', 'yes', ...announced);
  await node.do('CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
  await eventually('it is ready', async () => /state:ok/.test(await node.do('CLUSTER', 'INFO')));
  proxy.target = node.port;
  return node;
}

const quiet = (client) => client.on('error', () => {});
const GIVEN = {
  ioredis: (port) => quiet(new Redis({ port })),
  'ioredis, a cluster': (port) => quiet(new Cluster([{ host: '127.0.0.1', port }])),
  'node-redis': (port) => quiet(createClient({ url: `redis://127.0.0.1:${port}` })),
  'node-redis, a cluster': (port) => quiet(createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }] })),
};

// Of older ones the options of a cluster cannot be read, so that one is refused.
const nodeRedis = JSON.parse(readFileSync(new URL('../node_modules/redis/package.json', import.meta.url), 'utf8'));
const isOld = Number.parseInt(nodeRedis.version, 10) < 6;

for (const [name, given] of Object.entries(GIVEN)) {
  const skip = isOld && name === 'node-redis, a cluster';
  test(`a push whose reply is lost is no duplicate (${name})`, { skip }, async (t) => {
    const proxy = await losing(t);
    const server = await (name.includes('cluster') ? cluster(t, proxy) : Server.start(t));
    proxy.target = server.port;
    const connection = given(proxy.port);
    t.after(() => connection.disconnect());
    if (name.includes('node-redis')) await connection.connect();
    const queue = new Queue('q', { connection });
    await queue.len();
    proxy.lost = 'DQ.PUSH';
    assert.equal(await queue.push('x', { id: 'm' }), 'm', 'its reply was lost');
    assert.equal(await queue.push('x', { id: 'm' }), null, 'it is there');
    proxy.lost = 'DQ.MPUSH';
    assert.deepEqual(await queue.pushMany(['x'], { ids: ['n'] }), ['n']);
    assert.equal(await queue.len(), 2);
  });
}
