// One contender of benches/end-to-end: adds jobs and works on them, and prints a line of JSON for each figure.
//   node queues.mjs CONTENDER PORT FACTOR PACKAGES
// The scenarios are those of bullmq-bench. Only what happens between the first and the last job that is counted takes
// part in a rate; bullmq-bench itself divides the jobs of its warm-up by that time, too. FACTOR divides the numbers of
// jobs.
import { createRequire } from 'node:module';
import path from 'node:path';

const [contender, port, factor, packages] = process.argv.slice(2);
const jobs = (count) => Math.round(count / Number(factor));
const from = createRequire(path.resolve(packages, 'x'));
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };
const DATA = { text: 'x'.repeat(100) };
const WARM_UP = 1000;
const DELAYED = { jobs: 1000, perSecond: 200, headStartMs: 2000 };

/** Each returns how to add jobs, and how to work on them. `due` is in milliseconds. */
const CONTENDERS = {
  dq: () => {
    const { Queue, Worker } = createRequire(new URL('../../clients/node/', import.meta.url))('dq-client');
    const url = `redis://127.0.0.1:${port}`;
    const queue = new Queue('bench', { connection: url });
    return {
      add: (data) => queue.add('job', data),
      addBulk: (datas, due) =>
        queue.addBulk(datas.map((data) => ({ name: 'job', data, opts: due ? { at: due } : {} }))),
      work: (concurrency, handler) => new Worker('bench', handler, { connection: url, concurrency }),
    };
  },
  BullMQ: () => {
    const { Queue, Worker } = from('bullmq');
    const queue = new Queue('bench', { connection });
    const opts = (due) => ({ removeOnComplete: true, ...(due && { delay: Math.max(0, due - Date.now()) }) });
    return {
      add: (data) => queue.add('job', data, opts()),
      addBulk: (datas, due) => queue.addBulk(datas.map((data) => ({ name: 'job', data, opts: opts(due) }))),
      work: (concurrency, handler) => new Worker('bench', handler, { connection, concurrency }),
    };
  },
  Bull: () => {
    const Bull = from('bull');
    const make = () => new Bull('bench', { redis: { host: '127.0.0.1', port: Number(port) } });
    const queue = make();
    const opts = (due) => ({ removeOnComplete: true, ...(due && { delay: Math.max(0, due - Date.now()) }) });
    return {
      add: (data) => queue.add(data, opts()),
      addBulk: (datas, due) => queue.addBulk(datas.map((data) => ({ data, opts: opts(due) }))),
      work: (concurrency, handler) => {
        const worker = make();
        worker.process(concurrency, handler);
        return worker;
      },
    };
  },
  'bee-queue': () => {
    const Bee = from('bee-queue');
    const redis = { host: '127.0.0.1', port: Number(port) };
    const queue = new Bee('bench', { redis, isWorker: false, activateDelayedJobs: false });
    return {
      add: (data) => queue.createJob(data).save(),
      addBulk: (datas, due) =>
        queue.saveAll(datas.map((data) => (due ? queue.createJob(data).delayUntil(due) : queue.createJob(data)))),
      work: (concurrency, handler) => {
        const worker = new Bee('bench', { redis, removeOnSuccess: true, activateDelayedJobs: true });
        worker.process(concurrency, handler);
        return worker;
      },
    };
  },
};

const say = (figures) => console.log(JSON.stringify(figures));
const datas = (count) => Array.from({ length: count }, () => DATA);

async function addAll(queue, count, bulk) {
  for (let left = count; left > 0; left -= bulk) {
    await (bulk === 1 ? queue.add(DATA) : queue.addBulk(datas(Math.min(bulk, left))));
  }
}

/** Works until so many jobs are done after those of the warm-up. Returns the seconds of the former. */
async function work(queue, count, warmUp, concurrency) {
  let done = 0;
  let begun;
  const passed = await new Promise((resolve) => {
    const worker = queue.work(concurrency, async () => {
      done += 1;
      if (done === warmUp) begun = performance.now();
      if (done === warmUp + count) resolve([performance.now() - begun, worker]);
    });
  });
  await passed[1].close();
  return passed[0] / 1000;
}

const queue = CONTENDERS[contender]();

for (const [figure, count, bulk] of [
  ['add', 5000, 1],
  ['bulk', 50_000, 50],
]) {
  await addAll(queue, WARM_UP, bulk);
  const begun = performance.now();
  await addAll(queue, jobs(count), bulk);
  say({ [figure]: (jobs(count) * 1000) / (performance.now() - begun) });
}

// What the producers added, and the warm-up of each, is worked on here.
const added = 2 * WARM_UP + jobs(5000) + jobs(50_000);
const alone = jobs(5000);
say({ one: alone / (await work(queue, alone, WARM_UP, 1)) });
// A worker that takes jobs in advance gives them back when it is closed, so no job is missing here.
const rest = added - alone - WARM_UP;
const warm = Math.min(WARM_UP, Math.floor(rest / 2));
say({ many: (rest - warm) / (await work(queue, rest - warm, warm, 100)) });

const start = Date.now() + DELAYED.headStartMs;
const late = [];
const finished = new Promise((resolve) => {
  const worker = queue.work(100, async (job) => {
    late.push(performance.timeOrigin + performance.now() - job.data.due);
    if (late.length === jobs(DELAYED.jobs)) resolve(worker);
  });
});
for (let n = 0; n < jobs(DELAYED.jobs); n += 1) {
  const due = start + Math.floor((n * 1000) / DELAYED.perSecond);
  await queue.addBulk([{ due }], due);
}
await finished;
late.sort((one, other) => one - other);
say({ p50: late[Math.floor(late.length / 2)], p99: late[Math.floor(late.length * 0.99)] });
process.exit(0);
