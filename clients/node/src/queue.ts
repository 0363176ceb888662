/** A queue as producers and operators use it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bytes, decode, encode, encoded, fields, text, type Word } from './bytes.js';
import { clientOf, keyOf, targetOf } from './connection.js';
import type { Link, Target } from './drivers.js';
import { type DeadId, JobFailed, NotKept, WaitTimeout } from './errors.js';
import type { BatchInfo, MessageFields, QueueInfo, State } from './fields.js';
import { envelope, packed } from './job.js';
import type { Middleware } from './middleware.js';
import {
  type Connection,
  check,
  checkWhole,
  type Flow,
  type FollowOptions,
  headersOf,
  type LenOptions,
  type Message,
  type MessageOptions,
  type PeekOptions,
  type PromoteOptions,
  type PurgeOptions,
  type PushManyOptions,
  type PushOptions,
  type RedriveOptions,
  type RescheduleOptions,
  type ScheduleOptions,
  type Settings,
  wordsOf,
} from './options.js';
import { Sender } from './push.js';
import { isTransient } from './refusals.js';
import { answered, Route } from './route.js';
import { tracing } from './tracing.js';

/** How a queue is opened. */
export interface QueueOptions {
  connection: Connection;
  /**
   * After how many milliseconds a command fails if the server is away; 10 seconds by default. A push is repeated until
   * then, under the same id. 0: commands are sent once, and the server makes the ids.
   */
  pushTimeout?: number;
  middleware?: Middleware[];
}

/** A job that was added. */
export interface Added<Data = unknown> {
  id: string;
  name: string;
  data: Data;
  /** Whether the queue already held a message of this id, so that nothing was added. */
  duplicate: boolean;
}

// A wait is made of shorter ones, so that a server that is gone is noticed.
const WAIT_MS = 5000;
const MARGIN_MS = 5000;
const PAUSE_MS = 100;
// How long a result is kept beyond the time of the caller that waits for it.
const KEPT_MS = 60_000;

/** A queue by its name, which is its key. Its first push creates it. */
export class Queue<Data = unknown, Result = unknown> {
  readonly name: string;
  readonly #target: Target;
  readonly #key: Buffer;
  readonly #sender: Sender;
  readonly #middleware: Middleware[];

  constructor(name: Bytes, options: QueueOptions) {
    check(options, ['connection', 'pushTimeout', 'middleware']);
    if (!options.connection) throw new TypeError('the option connection is missing: a URL, options, or a client');
    const target = targetOf(options.connection);
    this.name = decode(encode(name, 'the name of a queue'));
    this.#key = keyOf(target, name);
    this.#target = target;
    checkWhole({ pushTimeout: options.pushTimeout }, 0, Number.POSITIVE_INFINITY);
    this.#sender = new Sender(clientOf(options.connection, target), this.#key, options.pushTimeout);
    this.#middleware = [...tracing, ...(options.middleware ?? [])];
  }

  // --- producers ---

  /**
   * Adds a job. If the connection breaks, the push is repeated under the same id until it is answered, so the job is
   * made once.
   */
  async add(name: string, data: Data, options: PushOptions = {}): Promise<Added<Data>> {
    const { id, duplicate } = await this.#sender.push(envelope(name, data), this.#decorated(options));
    return { id, name, data, duplicate };
  }

  /**
   * Adds jobs. Those that have the same options, but for their ids, travel in one step. If one of them is not
   * understood, none is added.
   */
  async addBulk(jobs: { name: string; data: Data; opts?: PushOptions }[]): Promise<Added<Data>[]> {
    type Group = { options: PushManyOptions; ids?: Bytes[]; payloads: string[]; places: number[] };
    const groups = new Map<string, Group>();
    jobs.forEach((job, at) => {
      check(job, ['name', 'data', 'opts']);
      const { id = null, ...options } = job.opts ?? {};
      const alike = JSON.stringify([id === null, ...wordsOf.pushMany(options).map(packed)]);
      const group: Group = groups.get(alike) ?? { options, payloads: [], places: [], ...(id !== null && { ids: [] }) };
      groups.set(alike, group);
      group.payloads.push(envelope(job.name, job.data));
      group.places.push(at);
      if (id !== null) group.ids?.push(encode(id, 'id'));
    });
    const added: Added<Data>[] = [];
    const push = async ({ options, ids, payloads, places }: Group) => {
      const pushed = await this.pushMany(payloads, { ...options, ...(ids && { ids }) });
      pushed.forEach((id, n) => {
        if (id instanceof Error) throw id;
        const at = places[n] as number;
        const { name, data } = jobs[at] as (typeof jobs)[number];
        added[at] = { id: id ?? decode(encode(ids?.[n] ?? '')), name, data, duplicate: id === null };
      });
    };
    await Promise.all([...groups.values()].map(push));
    return added;
  }

  /** Adds a message of any bytes. Returns its id, or null if the queue holds a message of this `id`. */
  async push(payload: Bytes, options: PushOptions = {}): Promise<string | null> {
    const { id, duplicate } = await this.#sender.push(payload, this.#decorated(options));
    return duplicate ? null : id;
  }

  /**
   * Adds messages of any bytes in one step. Returns for each its id, null if the queue holds a message of this id, or a
   * `DeadId` if that message is dead.
   */
  async pushMany(
    payloads: readonly Bytes[],
    { ids, ...options }: PushManyOptions & { ids?: readonly Bytes[] } = {},
  ): Promise<(string | null | DeadId)[]> {
    if (payloads.length === 0) return [];
    if (ids && ids.length !== payloads.length) {
      throw new RangeError(`there are ${payloads.length} payloads but ${ids.length} ids`);
    }
    return this.#sender.pushMany(payloads, ids, this.#decorated(options));
  }

  /**
   * Adds a job and waits for the result of its handler, for `timeout` milliseconds. A result that is JSON is returned
   * as its value, any other as a text. Rejects with `JobFailed`, `NotKept` or `WaitTimeout`.
   */
  async addAndWait(name: string, data: Data, options: PushOptions & { timeout: number }): Promise<Result> {
    const found = await this.pushAndWait(envelope(name, data), options);
    if (found === null) return undefined as Result;
    const result = decode(found);
    try {
      return JSON.parse(result) as Result;
    } catch {
      return result as Result;
    }
  }

  /** Adds a message of any bytes and waits for the result of its handler, as `addAndWait` does. */
  async pushAndWait(
    payload: Bytes,
    { timeout, ...options }: PushOptions & { timeout: number },
  ): Promise<Buffer | null> {
    checkWhole({ timeout: timeout ?? Number.NaN }, 0);
    const end = performance.now() + timeout;
    const { id } = await this.#sender.push(payload, this.#decorated({ retain: timeout + KEPT_MS, ...options }));
    const route = new Route(this.#target);
    let link: Link | undefined;
    try {
      for (;;) {
        const block = Math.max(1, Math.round(Math.min(WAIT_MS, end - performance.now())));
        try {
          link ??= await route.open();
          const answer = link.send(['DQ.AWAIT', this.#key, encode(id), 'BLOCK', String(block)]);
          const found = fields<MessageFields>(await answered(link, answer, block + MARGIN_MS));
          if (found) return resultOf(found);
        } catch (error) {
          if (!isTransient(error)) throw error;
          link?.close();
          link = undefined;
          if (!route.learn(error)) await sleep(PAUSE_MS);
        }
        const now = performance.now();
        if (!link && now < end) continue;
        const still = await this.get(id);
        if (!still) throw new NotKept(`the message ${id} is gone: cancelled, purged, or completed without being kept`);
        if (now >= end && still.state !== 'done' && still.state !== 'dead') {
          throw new WaitTimeout(`the message ${id} is still ${still.state}`);
        }
      }
    } finally {
      link?.close();
    }
  }

  /** Declares a recurring message, a job or any bytes. Returns `created`, `changed` or `unchanged`. */
  async schedule(id: Bytes, message: Message<Data>, options: ScheduleOptions): Promise<string> {
    const words = wordsOf.schedule(this.#decorated(options));
    return text(await this.#sender.ask('DQ.SCHEDULE', encode(id), payloadOf(message), ...words)) as string;
  }

  // --- batches ---

  /**
   * Sets the message, a job or any bytes, that follows once all messages that were pushed with this `batch` have ended.
   * Returns how many are left. It has the headers `dq-batch`, `dq-batch-total`, `dq-batch-acked`, `dq-batch-dead` and
   * `dq-batch-cancelled`. This is sent once, because the batch may have ended when a second command came.
   */
  async follow(batch: Bytes, message: Message<Data>, options: FollowOptions = {}): Promise<number> {
    const words = wordsOf.follow(this.#decorated(options));
    return Number(await this.#sender.ask('DQ.BATCH', encode(batch, 'a batch'), 'THEN', payloadOf(message), ...words));
  }

  /** Returns the progress of a batch, as `DQ.BATCHINFO` names it, or null if there is none. */
  async batchInfo(batch: Bytes): Promise<BatchInfo | null> {
    return fields<BatchInfo>(await this.#sender.ask('DQ.BATCHINFO', encode(batch, 'a batch')));
  }

  /** Removes the messages of a batch that are not dead, and what follows. Returns how many were removed. */
  async cancelBatch(batch: Bytes): Promise<number> {
    return Number(await this.#sender.ask('DQ.BATCH', encode(batch, 'a batch'), 'CANCEL'));
  }

  // --- changing messages ---

  /** Removes messages. Returns the state that each was in, null for those that were not there. */
  async cancel(...ids: Bytes[]): Promise<(string | null)[]> {
    if (ids.length === 0) return [];
    return ((await this.#sender.ask('DQ.CANCEL', ...encoded(ids))) as unknown[]).map(text);
  }

  /** Changes the due time or the priority of a message. Returns whether it was delayed or ready. */
  async reschedule(id: Bytes, options: RescheduleOptions): Promise<boolean> {
    return Number(await this.#sender.ask('DQ.RESCHEDULE', encode(id), ...wordsOf.reschedule(options))) === 1;
  }

  /** Makes delayed messages due now: all, the next ones, or those that are due by a time. Returns how many. */
  async promote(options: PromoteOptions = {}): Promise<number> {
    return Number(await this.#sender.ask('DQ.PROMOTE', ...wordsOf.promote(options)));
  }

  /** Makes dead messages live again: all, or those that the options choose. Returns how many. */
  async redrive({ ids, ...options }: RedriveOptions & { ids?: Bytes[] } = {}): Promise<number> {
    if (ids?.length === 0) return 0;
    const named = ids ? ['IDS', String(ids.length), ...encoded(ids)] : [];
    return Number(await this.#sender.askAll('DQ.REDRIVE', [...named, ...wordsOf.redrive(options)]));
  }

  /** Removes messages, of these states or of all. Schedules stay unless `recurring`. Returns how many. */
  async purge({ states = [], ...options }: PurgeOptions & { states?: State[] } = {}): Promise<number> {
    return Number(await this.#sender.ask('DQ.PURGE', ...states, ...wordsOf.purge(options)));
  }

  // --- looking ---

  /** Returns a message with all its fields, as `DQ.GET` names them, or null. */
  async get(id: Bytes): Promise<MessageFields | null> {
    return fields<MessageFields>(await this.#sender.ask('DQ.GET', encode(id)));
  }

  /** Returns the first messages of a state, `ready` by default; dead and done ones newest first. */
  async peek(which: State | (PeekOptions & { state?: State }) = {}): Promise<MessageFields[]> {
    const { state = 'ready', ...options } = typeof which === 'string' ? { state: which } : which;
    const found = await this.#sender.ask('DQ.PEEK', state, ...wordsOf.peek(options));
    return (found as unknown[]).map((each) => fields<MessageFields>(each) as MessageFields);
  }

  /** Returns the number of messages, of all or of one group, in a state, or of all that are neither dead nor done. */
  async len(which: State | (LenOptions & { state?: State }) = {}, more: LenOptions = {}): Promise<number> {
    const { state, ...options } = typeof which === 'string' ? { state: which, ...more } : { ...which, ...more };
    return Number(await this.#sender.ask('DQ.LEN', ...(state ? [state] : []), ...wordsOf.len(options)));
  }

  /** Returns counts, settings and totals, or null if the queue does not exist. */
  async info(): Promise<QueueInfo | null> {
    return fields<QueueInfo>(await this.#sender.ask('DQ.INFO'));
  }

  /**
   * Suspends delivery (`out`), new messages (`in`) or both (`all`), or the delivery of one group, for some milliseconds
   * or until `resume`.
   */
  async pause(duration?: number, flow: Flow = 'out'): Promise<void> {
    checkWhole({ duration }, 0);
    await this.#sender.ask(
      'DQ.PAUSE',
      ...flowWords(flow),
      ...(duration === undefined ? [] : ['FOR', String(duration)]),
    );
  }

  /** Resumes delivery (`out`), new messages (`in`) or both (`all`), or the delivery of one group. */
  async resume(flow: Flow = 'all'): Promise<void> {
    await this.#sender.ask('DQ.RESUME', ...flowWords(flow));
  }

  // --- settings ---

  /** Creates the queue with these settings, or changes them if it exists. Programs call it when they start. */
  async declare(settings: Settings = {}): Promise<void> {
    await this.#sender.ask('DQ.ALTER', 'MKQUEUE', ...wordsOf.settings(settings));
  }

  /** Creates the queue. Rejects with `Refused` if it exists with other settings. */
  async create(settings: Settings = {}): Promise<void> {
    await this.#sender.ask('DQ.CREATE', ...wordsOf.settings(settings));
  }

  /** Changes settings. Rejects with `Refused` if the queue does not exist. */
  async alter(settings: Settings): Promise<void> {
    await this.#sender.ask('DQ.ALTER', ...wordsOf.settings(settings));
  }

  /** Closes the connection, unless it was given. */
  async close(): Promise<void> {
    this.#sender.close();
  }

  #decorated<O extends MessageOptions>(options: O): O {
    const headers = headersOf(options.headers);
    for (const each of this.#middleware) each.push?.(this.name, headers);
    return { ...options, headers };
  }
}

function payloadOf(message: Message): Buffer {
  const isJob = typeof message === 'object' && message !== null && !ArrayBuffer.isView(message);
  if (!isJob) return encode(message, 'a message');
  check(message, ['name', 'data']);
  return encode(envelope(message.name, message.data));
}

function flowWords(flow: Flow): Word[] {
  if (typeof flow === 'string') return [flow];
  check(flow, ['group']);
  return ['GROUP', encode(flow.group, 'group')];
}

function resultOf(found: MessageFields): Buffer | null {
  if (found.state === 'dead') throw new JobFailed(String(found.error ?? `the message is dead: ${found.reason}`));
  const result = found.result ?? null;
  if (result?.length === 0) {
    throw new NotKept('the message is completed, but its result is not kept: no JSON, or more than 65536 bytes');
  }
  return result;
}
