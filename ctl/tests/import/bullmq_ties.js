// Fills a queue of BullMQ with job schedulers, a flow and a deduplicated job.
//
//   node bullmq_ties.js PORT        in a folder with the package bullmq

const { createRequire } = require("module");
const local = createRequire(process.cwd() + "/");
const { FlowProducer, Queue } = local("bullmq");
const { version } = local("bullmq/package.json");

const END = 4102444800000;
const connection = { host: "127.0.0.1", port: Number(process.argv[2]) };

async function main() {
  const queue = new Queue("mail", { connection });
  const flows = new FlowProducer({ connection });
  await queue.upsertJobScheduler(
    "often",
    { every: 60000, limit: 5, endDate: END },
    { name: "send", data: { to: "ann" }, opts: { attempts: 3, priority: 2 } },
  );
  await queue.upsertJobScheduler("nightly", { pattern: "0 3 * * *", tz: "Europe/Berlin" }, { name: "send" });
  await queue.upsertJobScheduler("seconds", { pattern: "*/10 * * * * *" }, { name: "send" });
  await queue.add("send", { once: true }, { jobId: "once", deduplication: { id: "only-one" } });
  await flows.add({
    name: "parent",
    queueName: "mail",
    opts: { jobId: "parent" },
    children: [
      { name: "child", queueName: "mail", opts: { jobId: "child" } },
      { name: "child", queueName: "other", opts: { jobId: "other-child", delay: END - Date.now() } },
    ],
  });
  await queue.close();
  await flows.close();
  console.log(JSON.stringify({ library: `bullmq ${version}`, source: "mail" }));
}

main();
