// Fills a queue of BullMQ, lets a worker fail so that jobs are dead or wait for a retry, and prints as JSON what was
// put there.
//
//   node bullmq_queue.js PORT        in a folder with the packages bullmq and ioredis

const { createRequire } = require("module");
const local = createRequire(process.cwd() + "/");
const { Queue, UnrecoverableError, Worker } = local("bullmq");
const { Redis } = local("ioredis");
const sleep = require("timers/promises").setTimeout;
const { version } = local("bullmq/package.json");

// Stack traces would name the folders of this machine.
Error.stackTraceLimit = 0;
const LATER = 4102444800000;
const connection = { host: "127.0.0.1", port: Number(process.argv[2]) };

async function main() {
  const queue = new Queue("mail", { connection });
  const other = new Queue("other", { connection });
  const jobs = [];
  const add = async (data, options = {}, past = {}) => {
    const job = await queue.add("send", data, options);
    jobs.push({
      id: `bullmq:mail:${job.id}`,
      due: options.delay ? job.timestamp + job.delay : null,
      priority: -Math.min(options.priority || 0, 128) + 0,
      data,
      retries: options.attempts > 1 ? options.attempts - 1 : null,
      ...past,
    });
  };
  const backoff = { type: "fixed", delay: LATER - Date.now() };
  const failures = [
    [{ fails: "once" }, {}, { attempt: 1, dead: "retries", error: "no such user" }],
    [{ fails: "twice" }, { attempts: 2 }, { attempt: 2, dead: "retries", error: "no such user" }],
    [{ fails: "for good" }, { attempts: 5 }, { attempt: 1, dead: "rejected", error: "no such user" }],
    [{ fails: "later" }, { attempts: 5, backoff }, { attempt: 1, error: "no such user" }],
  ];
  for (const failure of failures) await add(...failure);
  const worker = new Worker("mail", async ({ data }) => {
    throw data.fails === "for good" ? new UnrecoverableError("no such user") : new Error("no such user");
  }, { connection });
  worker.on("error", () => {});
  while ((await queue.getFailedCount()) < 3 || (await queue.getDelayedCount()) < 1) await sleep(20);
  await worker.close();
  const redis = new Redis(connection);
  jobs[3].due = Math.floor((await redis.zscore("bull:mail:delayed", "4")) / 4096);
  redis.disconnect();
  for (let number = 0; number < 4; number++) await add({ number, text: "ü\u2028" });
  await add({ own: true }, { jobId: "own-id" });
  for (const priority of [3, 1, 2, 2]) await add({ priority }, { priority });
  for (let number = 0; number < 4; number++) {
    await add({ z: number, a: 1.5 }, { delay: LATER - Date.now(), attempts: 4 });
  }
  await other.add("send", {});
  await queue.close();
  await other.close();
  console.log(JSON.stringify({ library: `bullmq ${version}`, source: "mail", left: 1, jobs }));
}

main();
