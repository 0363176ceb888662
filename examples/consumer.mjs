// A consumer with node-redis (npm install redis): node consumer.mjs [port]
// Replace closeOrder with your own work. To give it something to do: redis-cli DQ.PUSH orders:close "order 1001"
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';

const PORT = process.argv[2] ?? 6379;
const QUEUE = 'orders:close';
const CONCURRENCY = 4; // how many messages are worked on at the same time
const LEASE_MS = 30_000; // if this process dies, its messages are delivered again after this time
const BLOCK_MS = 5_000;
const NAME = `${QUEUE}@${hostname()}:${process.pid}`; // no spaces

/** Does the work. `lost` is an AbortSignal: once it fires, another consumer may have the message, so stop and throw. */
async function closeOrder(order, lost) {
  console.log('closing', order);
  await sleep(1_000, undefined, { signal: lost }); // stands for work that takes a second
}

function connect(options) {
  const client = createClient({ url: `redis://127.0.0.1:${PORT}`, ...options });
  return client.on('error', (error) => console.error(error.message)).connect();
}

const client = await connect(); // everything but waiting: a blocked connection does nothing else
const dq = (command, ...args) => client.sendCommand([`DQ.${command}`, QUEUE, ...args.map(String)]);
let stopping = false;

/** Runs work while its lease is extended at half time, and aborts it when the lease is lost. */
async function withLease(receipt, work) {
  const lost = new AbortController();
  const lose = () => lost.abort(new Error('the lease was lost'));
  const end = setTimeout(lose, LEASE_MS); // for when the server cannot be asked
  const extend = async () => {
    const deadline = await dq('EXTEND', receipt, 'LEASE', LEASE_MS);
    if (deadline === null) lose();
    else end.refresh();
  };
  const halfTime = setInterval(() => extend().catch(console.error), LEASE_MS / 2);
  try {
    await work(lost.signal);
  } finally {
    clearInterval(halfTime);
    clearTimeout(end);
  }
}

async function handle([id, payload, attempt, receipt]) {
  if (stopping) { // it came together with the signal: given back, and this attempt is not counted
    await dq('NACK', receipt, 'NOCOUNT');
    return;
  }
  try {
    await withLease(receipt, (lost) => closeOrder(payload, lost));
  } catch (error) {
    const state = await dq('NACK', receipt, 'ERROR', error.cause ?? error);
    console.error(`${id} failed at attempt ${attempt}: ${error.cause ?? error}; now ${state ?? 'not ours'}`);
    return;
  }
  if (await dq('ACK', receipt) === 0) console.error(`${id} was done too late: its lease was lost`);
}

/** Takes one message at a time, so that no lease runs while its message waits in this process. */
async function consume() {
  const waiting = await connect({ name: NAME });
  while (!stopping) {
    try {
      const pop = ['DQ.POP', QUEUE, 'LEASE', String(LEASE_MS), 'BLOCK', String(BLOCK_MS)];
      const messages = await waiting.sendCommand(pop);
      for (const message of messages ?? []) await handle(message); // null: nothing came in time
    } catch (error) { // the client reconnects by itself
      console.error(error.message);
      await sleep(1_000);
    }
  }
  waiting.destroy();
}

/** Ends the waiting of idle workers. A message that has been delivered to one of them is not lost by it. */
async function unblock() {
  for (const { id, name } of await client.clientList()) {
    if (name === NAME) await client.sendCommand(['CLIENT', 'UNBLOCK', String(id)]);
  }
}

let working = CONCURRENCY;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, async () => {
    console.log('stopping');
    stopping = true;
    while (working > 0) { // again and again: a worker may have been about to wait
      await unblock().catch(console.error);
      await sleep(100);
    }
  });
}
await Promise.all(Array.from({ length: CONCURRENCY }, () => consume().finally(() => { working -= 1; })));
client.destroy(); // work that had begun is finished
