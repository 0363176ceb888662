/**
 * A worker: it has handlers called for the messages of a queue. A thread speaks with the server (`thread/engine.ts`),
 * so that handlers cannot stall what keeps their leases. Handlers run in the main thread, or in a thread if they are
 * given as a file.
 */
import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, workerData as ownData, Worker as Thread } from 'node:worker_threads';
import { type Bytes, decode, encode, shown } from './bytes.js';
import { keyOf, targetOf } from './connection.js';
import { DqError, type LossReason, TimeLimitExceeded } from './errors.js';
import { Job, packed } from './job.js';
import { type Notice, type Order, SHARED_PLACES, Shared } from './messages.js';
import type { Middleware } from './middleware.js';
import { type Connection, check, checkWhole } from './options.js';
import { messageOf } from './outcome.js';
import { monotonic } from './route.js';
import { checkHandler, type Handler, type OnEvent, Runner } from './runner.js';
import type { EndedJob, FromThread, HandlersData, ThrownError } from './thread/handlers.js';
import { tracing } from './tracing.js';

/** How a worker works. Durations are in milliseconds. */
export interface WorkerOptions {
  connection: Connection;
  /** How many messages it works on at a time; 8 by default. */
  concurrency?: number;
  /**
   * How long a message stays with a worker that is gone; by default that of the queue. Leases are extended at half
   * time.
   */
  lease?: number;
  /** How long handlers get to end when the worker is closed; 30 seconds by default. */
  grace?: number;
  /** After how long a handler has failed; by default never. */
  timeLimit?: number;
  /** The end of the name under which `DQ.CONSUMERS` lists the worker, `host:pid:name`. */
  name?: Bytes;
  /** What surrounds handlers in the main thread. A file of handlers exports its own as `middleware`. */
  middleware?: Middleware[];
}

/** The events of a worker, and what its listeners get. */
export interface WorkerEvents<Data = unknown, Result = unknown> {
  /** It consumes, and learns of messages that are taken away. */
  ready: [];
  /** A handler begins. */
  active: [job: Job<Data, Result>];
  /** A handler has returned. */
  completed: [job: Job<Data, Result>, result: Result];
  /**
   * A handler has thrown, or reached its time limit. Without a listener it is written to stderr once the server has
   * recorded it.
   */
  failed: [job: Job<Data, Result>, error: Error];
  /**
   * The server has recorded a failure, and the message is now dead. Its `failedReason` is the error that is kept with
   * it.
   */
  dead: [job: Job<Data, Result>];
  /** A message was taken from its handler, whose outcome no longer counts. */
  lost: [job: Job<Data, Result>, reason: LossReason];
  /**
   * The server cannot be reached or refuses something, or a result cannot be stored. The worker goes on. Without a
   * listener it is written to stderr.
   */
  error: [error: Error];
  closed: [];
}

type Listener<Given extends unknown[]> = (...given: Given) => void;

// The emitters of older versions of @types/node are not generic.
export interface Worker<Data = unknown, Result = unknown> {
  on<E extends keyof WorkerEvents>(event: E, listener: Listener<WorkerEvents<Data, Result>[E]>): this;
  once<E extends keyof WorkerEvents>(event: E, listener: Listener<WorkerEvents<Data, Result>[E]>): this;
  off<E extends keyof WorkerEvents>(event: E, listener: Listener<WorkerEvents<Data, Result>[E]>): this;
}

const CONCURRENCY = 8;
const GRACE_MS = 30_000;
const CONSUMER_BYTES = 128;
// The pause before a thread of handlers that could not begin is started again.
const RESTART_MS = 1000;
// How long a worker may be without an answer until its thread knows the lease.
const FIRST_PATIENCE_MS = 10_000;

/** Works on the messages of a queue. `Data` is the type of their data, `Result` that of what the handler returns. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the class has these methods, with less exact types
export class Worker<Data = unknown, Result = unknown> extends EventEmitter {
  readonly name: string;
  readonly #lane: number;
  readonly #grace: number;
  readonly #timed: boolean;
  readonly #shared = new Float64Array(new SharedArrayBuffer(SHARED_PLACES * Float64Array.BYTES_PER_ELEMENT));
  #runner: Runner | undefined;
  #port: MessagePort | undefined;
  #thread: Thread | undefined;
  #isReady = false;
  #isStuck = false;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  /** A handler is a function, or the file whose default export is one, which then runs in a thread of its own. */
  constructor(queue: Bytes, handler: Handler<Data, Result> | string | URL, options: WorkerOptions) {
    super();
    if (typeof handler !== 'function' && typeof handler !== 'string' && !(handler instanceof URL)) {
      throw new TypeError(`a worker needs a handler, a function or the file of one, but got ${shown(handler)}`);
    }
    check(options, ['connection', 'concurrency', 'lease', 'grace', 'timeLimit', 'name', 'middleware']);
    const { connection, concurrency = CONCURRENCY, lease, timeLimit, grace = GRACE_MS, name = 'worker' } = options;
    if (!connection) throw new TypeError('the option connection is missing: a URL, options, or a client');
    checkWhole({ concurrency, lease }, 1);
    checkWhole({ timeLimit }, 1, Number.POSITIVE_INFINITY);
    checkWhole({ grace }, 0, Number.POSITIVE_INFINITY);
    this.name = decode(encode(queue, 'the name of a queue'));
    this.#grace = grace;
    this.#timed = timeLimit !== undefined;
    this.#shared[Shared.LastAnswer] = monotonic();
    this.#shared[Shared.Patience] = FIRST_PATIENCE_MS;
    if (typeof handler === 'function') checkHandler(handler);
    if (isOwnThread(ownData)) {
      throw new DqError('a Worker is made in a thread of dq-client, as a preload does: make it only if isMainThread');
    }
    const target = targetOf(connection);
    const key = packed(keyOf(target, queue));
    const consumer = consumerName(encode(name, 'name'));
    const file = typeof handler === 'function' ? '' : fileOf(handler);
    if (file && options.middleware) {
      throw new TypeError('a file of handlers exports its middleware itself, as middleware');
    }
    this.#lane = engine.add((notice) => this.#heard(notice), target.library);
    const begin = (port: MessagePort) => {
      const own = { lane: this.#lane, shared: this.#shared, hasThread: file !== '' };
      const config = { ...own, key, concurrency, lease, timeLimit, consumer, target };
      engine.order({ kind: 'add', config, port }, [port]);
    };
    if (typeof handler === 'function') {
      const { port1, port2 } = new MessageChannel();
      this.#runner = this.#run(port1, handler, options.middleware ?? []);
      begin(port2);
    } else {
      this.#startThread(file, begin);
    }
  }

  /** Resolves once it consumes. Rejects if it is closed before. */
  async waitUntilReady(): Promise<void> {
    const closed = () => new DqError('the worker is closed');
    if (this.#closing && !this.#isReady) throw closed();
    if (this.#isReady) return;
    await new Promise<void>((resolve, reject) => {
      this.once('ready', resolve as never);
      this.once('closed', () => reject(closed()));
    });
  }

  /**
   * Returns whether the server answered within the last lease, or within the time of a pop, and pops were not refused
   * so long.
   */
  isHealthy(): boolean {
    const now = monotonic();
    const patience = this.#shared[Shared.Patience] as number;
    const refusedSince = (this.#shared[Shared.RefusedSince] as number) || now;
    return (
      !this.#closing && now - (this.#shared[Shared.LastAnswer] as number) <= patience && now - refusedSince <= patience
    );
  }

  /**
   * Takes no further messages, waits for running handlers as long as `grace` says, aborts the others, gives their
   * messages back without counting an attempt, and ends. With `force` it does not wait.
   */
  close(force = false): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#shared[Shared.Stopping] = 1;
      this.once('closed', resolve as never);
      engine.order({ kind: 'stop', lane: this.#lane, grace: force ? 0 : this.#grace });
    });
    return this.#closing;
  }

  #run(port: MessagePort, handler: Handler<Data, Result>, middleware: Middleware[]): Runner {
    this.#port = port;
    const onEvent: OnEvent = (event, job, ...value) => {
      if (event === 'error') this.#complainOfResult(job as Job<Data, Result>, value[0] as Error);
      else this.#emit(event, ...([job, ...value] as never));
    };
    return new Runner({
      queueName: this.name,
      port,
      shared: this.#shared,
      timed: this.#timed,
      handler: handler as Handler<never>,
      middleware: [...tracing, ...middleware],
      onEvent,
    });
  }

  /** Starts the thread of a file of handlers, and again whenever it ends. */
  #startThread(file: string, begin: (port: MessagePort) => void): void {
    const { port1, port2 } = new MessageChannel();
    const workerData: HandlersData = {
      file,
      queueName: this.name,
      port: port1,
      shared: this.#shared,
      timed: this.#timed,
    };
    const thread = new Thread(threadFile('handlers.js'), { workerData, transferList: [port1] });
    this.#thread = thread;
    let isLoaded = false;
    let failure = 'it exited';
    thread.on('message', (message: FromThread) => {
      if (message.event !== 'loaded') {
        this.#heardOfJob(message);
        return;
      }
      isLoaded = true;
      if (!this.#closing) begin(port2);
    });
    thread.on('error', (error) => {
      failure = error instanceof Error ? error.message : String(error);
      this.#complain(`${this.name}: the thread of the handlers ended: ${failure}`, error);
    });
    thread.on('exit', async () => {
      if (this.#isClosed) return;
      if (this.#isStuck) failure = 'a handler has kept it busy beyond its time limit';
      this.#isStuck = false;
      if (!isLoaded) await sleep(RESTART_MS);
      const attach = (port: MessagePort) =>
        engine.order({ kind: 'attach', lane: this.#lane, port, error: failure }, [port]);
      if (!this.#isClosed) this.#startThread(file, isLoaded ? attach : begin);
    });
  }

  #heardOfJob(message: Exclude<FromThread, { event: 'loaded' }>): void {
    const job = this.#jobOf(message.job);
    if (message.event === 'active') this.#emit('active', job);
    else if (message.event !== 'completed') {
      const thrown = message.value as ThrownError;
      const error = Object.assign(new Error(thrown.message), thrown);
      if (message.event === 'failed') this.#emit('failed', job, error);
      else this.#complainOfResult(job, error);
    } else {
      job.returnvalue = message.value as Result;
      this.#emit('completed', job, message.value as Result);
    }
  }

  #jobOf({ delivered, ...ended }: EndedJob): Job<Data, Result> {
    return Object.assign(new Job<Data, Result>(this.name, delivered, () => {}), ended);
  }

  #heard(notice: Notice): void {
    if (notice.kind === 'error') {
      const { text, delivered } = notice;
      this.#complain(`${delivered ? this.#named(this.#jobOf({ delivered })) : this.name}: ${text}`);
    } else if (notice.kind === 'failed') {
      const { delivered, text, isDead } = notice;
      const job = this.#jobOf({ delivered, failedReason: text });
      if (isDead) this.#emit('dead', job);
      const end = `${isDead ? ' and is now dead' : ''}${text && `: ${text}`}`;
      if (this.listenerCount('failed') === 0) console.error(`${this.#named(job)} failed${end}`);
    } else if (notice.kind === 'ready') {
      this.#isReady = true;
      this.#emit('ready');
    } else if (notice.kind === 'stuck') {
      this.#isStuck = true;
      this.#complain(
        `${this.name}: the thread of the handlers is ended: one of them is beyond its time limit, and keeps it busy`,
      );
      void this.#thread?.terminate();
    } else if (notice.kind === 'closed') {
      this.#end(notice.givenBack, notice.unanswered);
    } else {
      const { delivered, reason } = notice;
      const job = (this.#runner?.jobOf(delivered.token) as Job<Data, Result>) ?? this.#jobOf({ delivered });
      if (reason !== 'time limit') this.#emit('lost', job, reason);
      else this.#emit('failed', job, new TimeLimitExceeded('the handler took longer than its time limit'));
    }
  }

  #end(givenBack: number, unanswered: number): void {
    this.#isClosed = true;
    if (givenBack > 0) console.error(`${this.name}: the worker has stopped; ${givenBack} messages went back`);
    if (unanswered > 0) {
      unreported += unanswered;
      const later = 'which are delivered again when their leases are over';
      this.#complain(`${this.name}: the worker could not report ${unanswered} messages, ${later}`);
    }
    this.#port?.close();
    void this.#thread?.terminate();
    engine.remove(this.#lane);
    this.#emit('closed');
  }

  /** Returns how logs name a message: its queue, its id, the name of the job if it is one, and the attempt. */
  #named(job: Job<Data, Result>): string {
    const name = job.isJob() ? ` (${shown(job.name)})` : '';
    return `${this.name}: message ${shown(job.id)}${name} at attempt ${job.attempt}`;
  }

  #complainOfResult(job: Job<Data, Result>, error: Error): void {
    this.#complain(`${this.#named(job)} is completed without its result: ${error.message} (logged once)`, error);
  }

  #complain(text: string, cause?: unknown): void {
    this.#raise(new DqError(text, { cause }));
  }

  #raise(error: Error): void {
    try {
      if (this.listenerCount('error') > 0) this.emit('error', error as never);
      else console.error(error.message);
    } catch (thrown) {
      console.error(`a listener of the event error has thrown: ${messageOf(thrown)}`);
    }
  }

  /** Emits an event. An error of a listener becomes an `error` event, and concerns no message. */
  #emit<E extends keyof WorkerEvents>(event: E, ...given: WorkerEvents<Data, Result>[E]): void {
    try {
      this.emit(event, ...given);
    } catch (error) {
      this.#raise(error instanceof Error ? error : new DqError(messageOf(error)));
    }
  }
}

const toClose = new Set<Pick<Worker, 'close'>>();
let signals = 0;
// How many outcomes the server has not accepted when workers stopped.
let unreported = 0;

/**
 * Closes workers after SIGTERM or SIGINT and then ends the process: with 0, or with 1 if the server did not accept all
 * outcomes, so that messages wait for the end of their leases. A second signal ends it at once with another code. It
 * may be called several times: the process ends when all workers are closed.
 */
export function closeOnSignals(...workers: Pick<Worker, 'close'>[]): void {
  if (toClose.size === 0) {
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  }
  for (const worker of workers) toClose.add(worker);
}

function onSignal(_: NodeJS.Signals, number: number): void {
  signals += 1;
  if (signals > 1) process.exit(128 + number);
  void Promise.all([...toClose].map((worker) => worker.close())).then(() => process.exit(unreported > 0 ? 1 : 0));
}

/**
 * The thread that speaks with the server, one for all workers of the process. It stays when the last worker is closed:
 * the compiler of a new thread would compete with the first thousand messages of the next worker. It keeps no process
 * alive.
 */
class Engine {
  #thread: Thread | undefined;
  #lanes = 0;
  readonly #listeners = new Map<number, (notice: Notice) => void>();

  /** Makes a lane, and starts the thread, which loads the library meanwhile. */
  add(listener: (notice: Notice) => void, library: string): number {
    this.#lanes += 1;
    this.#thread ??= this.#start(library);
    this.#thread.ref();
    this.#listeners.set(this.#lanes, listener);
    return this.#lanes;
  }

  order(order: Order, transferred: MessagePort[] = []): void {
    this.#thread?.postMessage(order, transferred);
  }

  remove(lane: number): void {
    this.#listeners.delete(lane);
    if (this.#listeners.size === 0) this.#thread?.unref();
  }

  #start(library: string): Thread {
    // Without the options of this process: a preload would make workers there, too.
    const { NODE_OPTIONS: _, ...env } = process.env;
    const thread = new Thread(threadFile('engine.js'), { workerData: library, execArgv: [], env });
    thread.on('message', (notice: Notice) => this.#listeners.get(notice.lane)?.(notice));
    // It ends by a defect only. The process is not to live without consuming.
    thread.on('error', (error) => {
      throw error;
    });
    return thread;
  }
}

const engine = new Engine();

/** Returns whether this code runs in a thread of handlers. */
function isOwnThread(data: unknown): boolean {
  return typeof data === 'object' && data !== null && 'file' in data && 'queueName' in data && 'shared' in data;
}

/** Returns the file of a thread. */
function threadFile(name: string): string {
  const file = path.join(__dirname, 'thread', name);
  if (!existsSync(file)) throw new DqError(`${file} is missing: tell your bundler that dq-client is external`);
  return file;
}

function fileOf(handler: string | URL): string {
  if (handler instanceof URL) return fileURLToPath(handler);
  return handler.startsWith('file:') ? fileURLToPath(handler) : path.resolve(handler);
}

/** Returns `host:pid:name`, shortened at the host to what the server takes. */
function consumerName(name: Buffer): string {
  const end = Buffer.concat([Buffer.from(`:${process.pid}:`), name]);
  const host = Buffer.from(hostname()).subarray(0, Math.max(0, CONSUMER_BYTES - end.length));
  return packed(Buffer.concat([host, end]).subarray(0, CONSUMER_BYTES));
}
