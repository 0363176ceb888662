// What must and must not compile; queues.test.mjs has the compiler look.
import type { Queue } from 'dq-client';

export async function use(queue: Queue): Promise<void> {
  const info = await queue.info();
  const counted: number = (info?.ready ?? 0) + (info?.['payload-bytes'] ?? 0);
  // @ts-expect-error there is no such field
  info?.redy;
  const [first] = await queue.peek('dead');
  const payload: Buffer | undefined = first?.payload;
  // @ts-expect-error there is no such state
  await queue.peek('daed');
  // @ts-expect-error nor this field
  (await queue.get('m'))?.atempt;
  // @ts-expect-error nor this one
  (await queue.batchInfo('b'))?.lost;
  await queue.len({ state: 'dead' });
  void counted;
  void payload;
}
