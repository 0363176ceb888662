// Drives BullMQ with its own client: a command a line of JSON on stdin, an answer a line of JSON on stdout.
//   node bullmq.mjs DIRECTORY-OF-node_modules PORT
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [directory, port] = process.argv.slice(2);
const { Queue, Worker } = createRequire(`${directory}/`)('bullmq');
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue('q', { connection });
const BULK = 1000;

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const body = (number, size) => String(number).padStart(10, '0').padEnd(size, 'x');
const job = (number, delay, size) => ({ name: 'm', data: body(number, size), opts: { delay, removeOnComplete: true } });

const commands = {
  // messages: [number, due in Unix ms or 0]; bulk: addBulk of this many, else `depth` single adds in flight.
  async push({ messages, size, bulk, depth }) {
    const jobs = (some) => some.map(([n, due]) => job(n, due ? Math.max(due - Date.now(), 0) : 0, size));
    const step = bulk ? BULK : depth;
    for (let at = 0; at < messages.length; at += step) {
      const some = jobs(messages.slice(at, at + step));
      if (bulk) await queue.addBulk(some);
      else await Promise.all(some.map(({ name, data, opts }) => queue.add(name, data, opts)));
    }
    return {};
  },

  // One worker of 100 until this many jobs are done, or `seconds` have passed.
  async work({ count, seconds }) {
    const bodies = [], late = [];
    let done;
    const all = new Promise((resolve) => { done = resolve; });
    const worker = new Worker('q', async (task) => {
      late.push(performance.timeOrigin + performance.now() - (task.timestamp + task.opts.delay));
      bodies.push(task.data);
    }, { connection, concurrency: 100 });
    worker.on('completed', () => { if (bodies.length >= count) done(); });
    await Promise.race([all, wait(seconds * 1000)]);
    await worker.close();
    return { bodies, late };
  },

  // The numbers with their delays, at `rate` a second, in slots of 5 ms.
  async pace({ delays, size, rate, start }) {
    for (let sent = 0; sent < delays.length;) {
      const owed = Math.min(Math.floor((Date.now() - start) * rate / 1000), delays.length);
      if (owed > sent) await queue.addBulk(delays.slice(sent, owed).map((delay, at) => job(sent + at, delay, size)));
      sent = Math.max(owed, sent);
      await wait(5);
    }
    return {};
  },

  async left() {
    const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'prioritized', 'completed', 'failed');
    return { left: Object.values(counts).reduce((sum, n) => sum + n, 0) };
  },
};

await queue.waitUntilReady();
console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...options } = JSON.parse(line);
  try {
    console.log(JSON.stringify(await commands[command](options)));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
process.exit(0);
