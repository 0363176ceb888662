// Does what a payload asks for. It runs in a thread, so that a handler that spins does not keep signals from the
// worker.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { RetryError, UnrecoverableError } from 'dq-client';
import { say } from './say.mjs';

// What JSON cannot say.
const NUMBERS = { NaN: Number.NaN, Infinity: Number.POSITIVE_INFINITY };
const HOW = { UnrecoverableError: 'reject', RetryError: 'retry' };

export default async function handle(job, { signal }) {
  const { queueName: queue, id, attempt, headers } = job;
  say('start', { queue, id, attempt, headers, checkpoint: job.checkpoint?.toString(), at: Date.now() });
  let how = 'ok';
  try {
    if (queue === 'tasks') return await choose(job);
    return await work(JSON.parse(job.payload.toString()), job, signal);
  } catch (error) {
    how = HOW[error.name] ?? 'fail';
    throw error;
  } finally {
    // A signal that is not aborted by a loss is by the time limit.
    if (signal.aborted) how = signal.reason.reason ? 'lost' : 'fail';
    say('end', { id, how, at: Date.now() });
  }
}

/** Chooses by the name of a job, as the README recommends. */
async function choose(job) {
  switch (job.name) {
    default:
      throw new Error(`no handler for ${job.name}`);
  }
}

async function work({ do: what, ms = 0, after, text, times, result }, job, signal) {
  switch (what) {
    case 'ok':
      return undefined;
    case 'result':
      return result;
    case 'no-result':
      return 1n;
    case 'save':
      await sleep(ms, undefined, { signal });
      job.save(text);
      await sleep(ms, undefined, { signal });
      if (job.attempt > times) return undefined;
      throw new Error(text);
    case 'fail':
      if (job.attempt > times) return undefined;
      throw new Error(text);
    case 'reject':
      throw new UnrecoverableError(text);
    case 'retry':
      throw new RetryError({ after: NUMBERS[after] ?? after, message: text });
    case 'exit':
      return process.kill(process.pid, 'SIGKILL');
    case 'hang':
      return sleep(ms, undefined, { signal });
    case 'spin':
      for (const end = Date.now() + ms; Date.now() < end; );
      return turn(); // The event loop receives what came meanwhile.
    default:
      throw new Error(`unknown task ${JSON.stringify(what)}`);
  }
}
