// A consumer with node-redis (npm install redis): node consumer.mjs [port]
import { createClient } from 'redis';

const QUEUE = 'orders:close';
const url = `redis://127.0.0.1:${process.argv[2] ?? 6379}`;

// A blocked connection does nothing else: one to wait on, one for everything besides.
const client = await createClient({ url }).on('error', console.error).connect();
const waiting = await client.duplicate().on('error', console.error).connect();

async function closeOrder(order) {
  console.log('closing', order);
}

let running = true; // the message in hand is still finished
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => { running = false; });

await client.sendCommand(['DQ.PUSH', QUEUE, 'order 1001', 'ID', 'order-1001', 'DELAY', '2000']);

while (running) {
  const messages = await waiting.sendCommand(['DQ.POP', QUEUE, 'COUNT', '10', 'BLOCK', '5000']);
  for (const [id, payload, attempt, receipt] of messages ?? []) { // null: nothing came in time
    try {
      await closeOrder(payload);
    } catch (error) {
      const state = await client.sendCommand(['DQ.NACK', QUEUE, receipt, 'ERROR', String(error)]);
      console.error(`${id} failed at attempt ${attempt}: ${error}; now ${state}`);
      continue;
    }
    // 0: the lease had ended and another consumer has the message. Work that takes long calls DQ.EXTEND.
    const acked = await client.sendCommand(['DQ.ACK', QUEUE, receipt]);
    if (acked === 0) console.error(`${id} was done too late`);
  }
}
client.destroy();
waiting.destroy();
