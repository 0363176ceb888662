/**
 * Calls the handlers of a worker and reports how they end. It runs where the handlers run: in the main thread, or in a
 * thread of their own. It decides nothing by time and speaks with no server, so a handler that blocks it endangers
 * nothing.
 */
import { AsyncResource } from 'node:async_hooks';
import { setMaxListeners } from 'node:events';
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { type LossReason, MessageLost, TimeLimitExceeded } from './errors.js';
import { type Delivered, Job } from './job.js';
import { type End, type FromHandlers, Shared, type ToHandlers } from './messages.js';
import type { Middleware } from './middleware.js';
import { GIVEN_BACK, messageOf, type Outcome, ofError, ofResult, UNSTORED } from './outcome.js';

/** What a handler gets besides its job. */
export interface HandlerContext {
  /** Aborted when the message is no longer this handler's. Its `reason` is a `MessageLost` or a `TimeLimitExceeded`. */
  readonly signal: AbortSignal;
}

/** Works on a job. What it returns is kept as the result if the message has a `retain`. */
export type Handler<Data = unknown, Result = unknown> = (
  job: Job<Data, Result>,
  context: HandlerContext,
) => Promise<Result> | Result;

/**
 * Is called with each event of a handler. The value is the result of one that returned, the error of one that threw, or
 * why a result is not stored.
 */
export type OnEvent = (event: 'active' | 'completed' | 'failed' | 'error', job: Job, ...value: [unknown?]) => void;

/** How a runner is made. */
export interface RunnerOptions {
  queueName: string;
  port: MessagePort;
  shared: Float64Array;
  timed: boolean;
  handler: Handler<never>;
  middleware: Middleware[];
  onEvent: OnEvent;
}

class Running implements HandlerContext {
  readonly job: Job;
  isLost = false;
  readonly #controller = new AbortController();

  constructor(job: Job) {
    this.job = job;
  }

  /** Is made when a handler asks for it, since that takes long. */
  get signal(): AbortSignal {
    const { signal } = this.#controller;
    setMaxListeners(0, signal); // A handler may pass it to as many calls as it likes.
    return signal;
  }

  lose(reason: LossReason): void {
    this.isLost = true;
    const isLimit = reason === 'time limit';
    this.#controller.abort(isLimit ? new TimeLimitExceeded('the handler took too long') : new MessageLost(reason));
  }
}

/** Calls the handlers of one worker. */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #running = new Map<number, Running>();
  readonly #todo: Delivered[] = [];
  readonly #lostBefore = new Set<number>();
  /** What handlers inherit: not what the one before has entered. */
  readonly #base = new AsyncResource('dq-client');
  #ends: End[] = [];
  #beginning = false;
  #hasUnstored = false;

  constructor(options: RunnerOptions) {
    this.#options = options;
    options.port.on('message', (message: ToHandlers) => {
      this.#take(message);
      this.#beginAll();
    });
  }

  /** Returns the job of a handler that runs. */
  jobOf(token: number): Job | undefined {
    return this.#running.get(token)?.job;
  }

  #take({ deliver, lost, ping }: ToHandlers): void {
    if (ping) this.#post({ pong: true });
    if (deliver) this.#todo.push(...deliver);
    if (!lost) return;
    const running = this.#running.get(lost.token);
    if (running) running.lose(lost.reason);
    else if (this.#todo.some((delivered) => delivered.token === lost.token)) this.#lostBefore.add(lost.token);
  }

  /** Takes what was sent while a handler occupied this thread. */
  #drain(): void {
    const { port } = this.#options;
    for (let found = receiveMessageOnPort(port); found; found = receiveMessageOnPort(port)) this.#take(found.message);
  }

  #beginAll(): void {
    if (this.#beginning) return;
    this.#beginning = true;
    for (let at = 0; at < this.#todo.length; at += 1) {
      this.#drain();
      this.#begin(this.#todo[at] as Delivered);
    }
    this.#todo.length = 0;
    this.#beginning = false;
  }

  /** A message that was lost before its handler began is let go, and given back if the worker stops. */
  #begin(delivered: Delivered): void {
    const { queueName, port, shared, timed, onEvent } = this.#options;
    const { token } = delivered;
    shared[Shared.Begun] = token;
    if (this.#lostBefore.delete(token)) {
      this.#report([token]);
    } else if (shared[Shared.Stopping]) {
      this.#report([token, ...GIVEN_BACK]);
    } else {
      const save = (checkpoint: string) => this.#post({ save: { token, checkpoint } });
      const running = new Running(new Job(queueName, delivered, save));
      this.#running.set(token, running);
      if (timed) port.postMessage({ begun: token } satisfies FromHandlers);
      running.job.processedOn = Date.now();
      onEvent('active', running.job);
      const own = this.#base.runInAsyncScope(() => new AsyncResource('dq-client handler'));
      own.runInAsyncScope(() => void this.#run(token, running));
    }
  }

  async #run(token: number, running: Running): Promise<void> {
    const { handler, middleware, onEvent } = this.#options;
    const { job } = running;
    let working: Promise<unknown> | undefined;
    const work = (): Promise<unknown> => {
      const handled = (async () => notGenerator(await handler(job as never, running)))();
      working = handled.finally(() => {
        working = undefined;
      });
      return working;
    };
    const call = middleware.reduceRight<() => Promise<unknown>>(
      (next, { handle }) => (handle ? () => handle(job, next) : next),
      work,
    );
    let outcome: Outcome | undefined;
    let result: unknown;
    let failure: Error | undefined;
    let unstored: Error | undefined;
    try {
      result = await call();
      // Middleware that does not await its handler would have the message acked while that works.
      if (working) result = await working;
    } catch (thrown) {
      outcome = ofError(thrown);
      failure = thrown instanceof Error ? thrown : new Error(messageOf(thrown));
    }
    this.#drain();
    this.#running.delete(token);
    job.finishedOn = Date.now();
    if (running.isLost) {
      this.#report([token]);
      return;
    }
    try {
      outcome ??= ofResult(result, job);
    } catch (error) {
      outcome = UNSTORED;
      unstored = error as Error;
    }
    this.#report([token, ...outcome]);
    if (unstored && !this.#hasUnstored) {
      this.#hasUnstored = true;
      onEvent('error', job, unstored);
    }
    if (failure) {
      job.failedReason = failure.message;
      onEvent('failed', job, failure);
    } else {
      job.returnvalue = result;
      onEvent('completed', job, result);
    }
  }

  /** Reports the ends of one turn of the event loop together. */
  #report(end: End): void {
    this.#ends.push(end);
    if (this.#ends.length > 1) return;
    process.nextTick(() => {
      const ends = this.#ends;
      this.#ends = [];
      this.#post({ ends });
      this.#beginAll();
    });
  }

  #post(message: FromHandlers): void {
    this.#options.port.postMessage(message);
  }
}

const NO_GENERATOR =
  'a generator runs only as far as somebody iterates over it: let the handler do its work and return';

/** Refuses a generator function as a handler. */
export function checkHandler(handler: unknown): void {
  const kind = Object.prototype.toString.call(handler);
  if (/Generator/.test(kind)) throw new TypeError(`the handler is a generator function; ${NO_GENERATOR}`);
}

/** Refuses a generator, which has done nothing yet, as what a handler returned. */
function notGenerator<T>(result: T): T {
  const kind = typeof result === 'object' && result !== null ? Object.prototype.toString.call(result) : '';
  if (/Generator/.test(kind)) throw new TypeError(`the handler returned a generator; ${NO_GENERATOR}`);
  return result;
}
