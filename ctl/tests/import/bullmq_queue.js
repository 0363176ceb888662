// Fills a queue of BullMQ, and prints as JSON what was put there.
//
//   node bullmq_queue.js PORT        in a folder with the packages bullmq and ioredis

const { createRequire } = require("module");
const local = createRequire(process.cwd() + "/");
const { Queue } = local("bullmq");
const { version } = local("bullmq/package.json");

const LATER = 4102444800000;
const connection = { host: "127.0.0.1", port: Number(process.argv[2]) };

async function main() {
  const queue = new Queue("mail", { connection });
  const other = new Queue("other", { connection });
  const jobs = [];
  const add = async (data, options = {}) => {
    const job = await queue.add("send", data, options);
    jobs.push({
      id: `bullmq:mail:${job.id}`,
      due: options.delay ? job.timestamp + job.delay : null,
      priority: -Math.min(options.priority || 0, 128) + 0,
      data,
      retries: options.attempts ? options.attempts - 1 : null,
    });
  };
  for (let number = 0; number < 4; number++) await add({ number, text: "ü\u2028" });
  await add({ own: true }, { jobId: "own-id" });
  for (const priority of [3, 1, 2, 2]) await add({ priority }, { priority });
  for (let number = 0; number < 4; number++) await add({ z: number, a: 1.5 }, { delay: LATER - Date.now(), attempts: 4 });
  await other.add("send", {});
  await queue.close();
  await other.close();
  console.log(JSON.stringify({ library: `bullmq ${version}`, source: "mail", left: 1, jobs }));
}

main();
