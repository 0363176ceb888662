// The producer that the conformance suite drives: a push for each line of standard input.
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { DqError, Queue } from 'dq-client';

const { values } = parseArgs({ options: { url: { type: 'string' } } });
const queues = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const { queue, payload, ...given } = JSON.parse(line);
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  if (!queues.has(queue)) queues.set(queue, new Queue(queue, { connection: values.url }));
  try {
    console.log(JSON.stringify({ id: await queues.get(queue).push(payload, options) }));
  } catch (error) {
    if (!(error instanceof DqError)) throw error;
    console.log(JSON.stringify({ error: error.name }));
  }
}
await Promise.all([...queues.values()].map((queue) => queue.close()));
