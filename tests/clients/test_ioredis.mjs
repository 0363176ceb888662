// What docs/clients.md says of ioredis.
//
// usage: test_ioredis.mjs PORT

import assert from 'node:assert';
import { Redis } from 'ioredis';

const port = Number(process.argv[2]);
const redis = new Redis({ port });

async function waitingClients(expected) {
  const waiting = async () => Number(/dq_blocked_clients:(\d+)/.exec(await redis.info('dq'))[1]);
  while (await waiting() !== expected);
}

const promises = {
  async 'keyPrefix is not applied to call'() {
    const prefixed = new Redis({ port, keyPrefix: 'app:' });
    await prefixed.call('DQ.PUSH', 'jobs', 'x');
    assert.deepEqual(await redis.keys('*'), ['jobs']);
    prefixed.disconnect();
  },

  async 'maps are flat unless replyMapping is resp3'() {
    await redis.call('DQ.PUSH', 'jobs', 'x', 'ID', 'm');
    assert.equal((await redis.call('DQ.GET', 'jobs', 'm'))[0], 'id');
    const mapping = new Redis({ port, replyMapping: 'resp3' });
    assert.equal((await mapping.call('DQ.GET', 'jobs', 'm')).id, 'm');
    mapping.disconnect();
  },

  async 'a wait that commandTimeout gave up still takes a message'() {
    const hasty = new Redis({ port, commandTimeout: 300 });
    await assert.rejects(hasty.call('DQ.POP', 'jobs', 'BLOCK', 0), /timed out/);
    await redis.call('DQ.PUSH', 'jobs', 'x');
    assert.equal(await redis.call('DQ.LEN', 'jobs', 'inflight'), 1);
    hasty.disconnect();
  },

  async 'a waiting pop is sent again unless that is turned off'() {
    const kill = () => redis.client('KILL', 'TYPE', 'normal');
    const stubborn = new Redis({ port });
    const popped = stubborn.call('DQ.POP', 'jobs', 'BLOCK', 0);
    await waitingClients(1);
    await kill();
    await waitingClients(1);
    await redis.call('DQ.PUSH', 'jobs', 'x', 'ID', 'm');
    assert.equal((await popped)[0][0], 'm');
    stubborn.disconnect();

    const honest = new Redis({ port, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 });
    const rejected = assert.rejects(honest.call('DQ.POP', 'jobs', 'BLOCK', 0));
    await waitingClients(1);
    await kill();
    await rejected;
    honest.disconnect();
  },
};

for (const [name, test] of Object.entries(promises)) {
  console.log(name);
  await redis.flushall();
  await test();
}
redis.disconnect();
