// Measures dq-client for Node and BullMQ with an empty handler: messages a second, and how late delayed messages are.
// Prints a line of JSON for each.
//   node benches/workers/node.mjs URL DIRECTORY-OF-BULLMQ [--messages N] [--delayed N] [--rounds N]
// One process works on 64 messages at a time. All messages are in the queue before the worker begins. For the lateness
// they fall due at a steady rate while the worker waits. The rounds of both alternate. The server's database 0 is
// emptied.
import { createRequire } from 'node:module';
import path from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    messages: { type: 'string', default: '30000' },
    delayed: { type: 'string', default: '2000' },
    rounds: { type: 'string', default: '3' },
  },
});
const [url, directory] = positionals;
const [messages, delayed, rounds] = [values.messages, values.delayed, values.rounds].map(Number);
const CONCURRENCY = 64;
const BULK = 1000;
const RATE = 200; // delayed messages a second
const HEAD_START_MS = 2000;

const client = createRequire(new URL('../../clients/node/', import.meta.url));
const { Queue, Worker } = client('dq-client');
const { Redis } = client('ioredis');
const fromBullMQ = createRequire(path.resolve(directory, 'x'));
const bullmq = fromBullMQ('bullmq');
const { hostname, port } = new URL(url);
const admin = new Redis(url);
const bullConnection = { host: hostname, port: Number(port), maxRetriesPerRequest: null };

const laterBy = (due) => ({ delay: Math.max(0, due - Date.now()) });
const CONTENDERS = {
  dq: {
    version: client('dq-client/package.json').version,
    Queue,
    Worker,
    connection: url,
    options: {},
    when: (due) => ({ at: due }),
  },
  BullMQ: {
    version: fromBullMQ('bullmq/package.json').version,
    ...bullmq,
    connection: bullConnection,
    options: { removeOnComplete: true },
    when: laterBy,
  },
};

/** Adds jobs, has a worker do them, and returns how late each was and how long all took. */
async function work({ Queue, Worker, connection, options, when }, count, dueOf) {
  await admin.flushdb();
  const queue = new Queue('bench', { connection });
  for (let at = 0; at < count; at += BULK) {
    const some = Array.from({ length: Math.min(BULK, count - at) }, (_, n) => dueOf?.(at + n));
    await queue.addBulk(some.map((due) => ({ name: 'm', data: { due }, opts: { ...options, ...(due && when(due)) } })));
  }
  const late = [];
  let finish;
  const all = new Promise((resolve) => {
    finish = resolve;
  });
  let begun;
  const handler = async (job) => {
    begun ??= performance.now(); // without the start of the worker
    late.push(performance.timeOrigin + performance.now() - job.data.due);
    if (late.length === count) finish(performance.now() - begun);
  };
  const worker = new Worker('bench', handler, { connection, concurrency: CONCURRENCY });
  const passed = await all;
  await worker.close();
  await queue.close();
  return { late: late.sort((one, other) => one - other), passed };
}

const middle = (all) => all.sort((one, other) => one - other)[Math.floor(all.length / 2)];
const figures = {};
for (let round = 0; round < rounds; round += 1) {
  for (const [name, contender] of Object.entries(CONTENDERS)) {
    const { passed } = await work(contender, messages);
    const start = Date.now() + HEAD_START_MS;
    const { late } = await work(contender, delayed, (n) => start + (n * 1000) / RATE);
    figures[name] ??= { rate: [], p50: [], p99: [] };
    figures[name].rate.push((messages * 1000) / passed);
    for (const percent of [50, 99]) figures[name][`p${percent}`].push(late[Math.floor((late.length * percent) / 100)]);
  }
}
for (const [name, { rate, p50, p99 }] of Object.entries(figures)) {
  const worker = `${name} ${CONTENDERS[name].version}`;
  console.log(JSON.stringify({ worker, rate: middle(rate), p50: middle(p50), p99: middle(p99) }));
}
process.exit(0);
