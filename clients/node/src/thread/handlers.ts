/** The thread in which the handler of a file runs. */

import { pathToFileURL } from 'node:url';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type Delivered, type Job, jsonOf } from '../job.js';
import type { Middleware } from '../middleware.js';
import { checkHandler, type Handler, type OnEvent, Runner } from '../runner.js';
import { tracing } from '../tracing.js';

/** What the thread is started with. */
export interface HandlersData {
  file: string;
  queueName: string;
  port: MessagePort;
  shared: Float64Array;
  timed: boolean;
}

/** What the thread reports to the main thread: that it has loaded its file, or an event of a job. */
export type FromThread = { event: 'loaded' } | { event: Parameters<OnEvent>[0]; job: EndedJob; value?: unknown };

/** A job as it passes from thread to thread. */
export interface EndedJob {
  delivered: Delivered;
  processedOn?: number;
  finishedOn?: number;
  failedReason?: string;
}

/** An error as it passes from thread to thread: classes are lost on the way. */
export interface ThrownError {
  name: string;
  message: string;
  stack?: string;
}

async function begin({ file, ...options }: HandlersData): Promise<void> {
  const loaded = await import(file.startsWith('file:') ? file : pathToFileURL(file).href);
  const handler: Handler<never> = loaded.default?.default ?? loaded.default ?? loaded;
  if (typeof handler !== 'function') throw new TypeError(`${file} must export its handler as default`);
  checkHandler(handler);
  const own: Middleware[] = loaded.middleware ?? loaded.default?.middleware ?? [];
  const report = (message: FromThread) => parentPort?.postMessage(message);
  const onEvent: OnEvent = (event, job, ...value) => {
    report({ event, job: plain(job), value: value[0] instanceof Error ? thrown(value[0]) : plainResult(value[0]) });
  };
  new Runner({ ...options, handler, middleware: [...tracing, ...own], onEvent });
  report({ event: 'loaded' });
}

function plain({ delivered, processedOn, finishedOn, failedReason }: Job): EndedJob {
  return { delivered, processedOn, finishedOn, failedReason };
}

function thrown({ name, message, stack }: Error): ThrownError {
  return { name, message, ...(stack !== undefined && { stack }) };
}

/**
 * Returns the part of a result that can be passed. The reason why anything else is not stored is reported separately.
 */
function plainResult(result: unknown): unknown {
  if (typeof result === 'string' || result instanceof Uint8Array || result === undefined) return result;
  try {
    return JSON.parse(jsonOf(result, 'the result'));
  } catch {
    return undefined;
  }
}

void begin(workerData as HandlersData);
