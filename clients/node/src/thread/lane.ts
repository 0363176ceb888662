/**
 * What a worker knows of one queue: the messages that it holds, and the outcomes that the server has not answered yet.
 * A message occupies its place until its handler has ended and its outcome has been answered. Once its outcome is
 * decided, by the end of its handler or by its loss, nothing else counts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { decode, entries, type Word } from '../bytes.js';
import type { LossReason } from '../errors.js';
import { type Delivered, packed, unpacked } from '../job.js';
import { type FromHandlers, type LaneConfig, type Notice, Shared, type ToHandlers } from '../messages.js';
import { ACK, GIVEN_BACK, type Outcome, ofError } from '../outcome.js';
import { LONGEST_TIMER_MS, monotonic, Route } from '../route.js';
import { Bell } from './bell.js';
import { DRIFT, hasJumped, ROUNDING_MS, ServerTime } from './server-time.js';

/** How long a pop waits. */
export const BLOCK_MS = 5000;
/** How much later its answer may come, and how long any other answer may take. */
export const MARGIN_MS = 5000;
// The lease of a queue whose settings this user may not read: the default of the server.
const DEFAULT_LEASE_MS = 30_000;
// How long the thread of handlers may take to answer when one of them has reached its time limit.
const STUCK_MS = 1000;
// A notice may come before the answer of the pop that it concerns. So many are remembered.
const EARLY_NOTICES = 1000;

/** A message that this worker holds. Instants are those of `performance.now()`. */
export interface Delivery {
  delivered: Delivered;
  /** When the lease expires. */
  end: number;
  /** When the lease is to be extended. */
  due: number;
  /** When the lease expires by the clock of the server. */
  deadline: number | undefined;
  /** When the server reported that. */
  heard: number;
  /** When the time limit is reached. */
  limit: number;
  decided: boolean;
  ended: boolean;
  /** Whether the lease has ended while the outcome was not answered. */
  late: boolean;
  /** The last checkpoint, as long as the server has neither kept nor refused it. */
  unsaved: Save | undefined;
}

/** A checkpoint that is to be stored, packed. */
export interface Save {
  delivery: Delivery;
  checkpoint: string;
}

/** An outcome that is to be reported. */
export interface Report {
  delivery: Delivery;
  outcome: Outcome;
}

/** One queue of a worker. */
export class Lane {
  readonly key: Buffer;
  readonly config: LaneConfig;
  readonly route: Route;
  /** Rings when there may be something to pop for, and something to report. */
  readonly toPop = new Bell();
  readonly toReport = new Bell();
  /** The deliveries that occupy a place, and those of them whose outcome is open. */
  readonly places = new Map<number, Delivery>();
  readonly held = new Map<string, Delivery>();
  reports: Report[] = [];
  saves: Save[] = [];
  /** Whether reports go with the next pop. */
  collecting = false;
  /** Whether all leases are to be extended now. */
  extendNow = false;
  /** Whether reports that were not answered are to be repeated before the next pop. */
  recovering = false;
  readonly serverTime = new ServerTime();
  leaseMs: number;
  readonly #stopped = new AbortController();
  readonly #closed = new AbortController();
  /** 0: there is none; undefined: that is not known. */
  #maxLeaseMs: number | undefined;
  #port: MessagePort;
  #token = 0;
  readonly #early = new Map<string, LossReason>();
  readonly #unanswered = new Set<Delivery>();
  #givenBack = 0;
  #timer: NodeJS.Timeout | undefined;
  #stuck: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(config: LaneConfig, port: MessagePort) {
    this.config = config;
    this.key = unpacked(config.key);
    this.leaseMs = Math.round(config.lease ?? DEFAULT_LEASE_MS);
    this.route = new Route(config.target);
    this.#port = port;
    this.#listen();
    this.heard();
  }

  /** Whether it takes no further messages. */
  get stopping(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** Whether nothing more is to be sent. */
  get closed(): boolean {
    return this.#closed.signal.aborted;
  }

  /** How long a lease of a message without one of its own lasts. */
  get lease(): number {
    return this.#maxLeaseMs ? Math.min(this.leaseMs, this.#maxLeaseMs) : this.leaseMs;
  }

  /** How many more messages it can work on. */
  get room(): number {
    return this.config.concurrency - this.places.size;
  }

  /** Whether the server has answered all outcomes. */
  get allAnswered(): boolean {
    return this.#unanswered.size === 0;
  }

  /** Reads the settings of the queue from `DQ.INFO`. */
  learn(info: unknown): void {
    const settings = Object.fromEntries(entries(info));
    this.leaseMs = Math.round(this.config.lease ?? (Number(settings.lease) || DEFAULT_LEASE_MS));
    this.#maxLeaseMs = Number(settings.maxlease) || 0;
    this.config.shared[Shared.Patience] = Math.max(this.lease, BLOCK_MS + MARGIN_MS);
  }

  /**
   * The lease that a command asks for. Without one, that of the message counts, else that of the queue. How long that
   * of a message lasts only the time of the server tells, so without it that of the queue is asked for.
   */
  get leaseWords(): Word[] {
    if (this.config.lease === undefined && this.serverTime.isKnown) return [];
    return ['LEASE', String(this.leaseMs)];
  }

  /** How long a pop waits. Leases that count from its sending are not to be over when its answer arrives. */
  get blockMs(): number {
    return this.serverTime.isKnown ? BLOCK_MS : Math.max(1, Math.min(BLOCK_MS, Math.floor(this.lease / 2)));
  }

  /** The words of a pop that follow its key. */
  popWords(room: number): Word[] {
    return ['COUNT', String(room), ...this.leaseWords, 'META', 'AS', unpacked(this.config.consumer)];
  }

  /**
   * Takes messages in and passes them to handlers. Their leases began at `begun` or later; if that is undefined, the
   * time of the server was to tell when they end.
   */
  received(messages: unknown, begun: number | undefined): void {
    const deliver: Delivered[] = [];
    const now = performance.now();
    for (const message of (messages ?? []) as [Buffer, Buffer, number, Buffer, unknown][]) {
      const delivery = this.#delivery(message, now, begun);
      const { delivered } = delivery;
      const early = this.#early.get(delivered.receipt);
      if (delivery.end <= now) {
        // The answer came when another worker may have the message.
        this.notify({ kind: 'lost', lane: this.config.lane, delivered, reason: 'lease' });
        continue;
      }
      this.places.set(delivered.token, delivery);
      this.held.set(delivered.receipt, delivery);
      if (early || this.stopping) {
        delivery.ended = true;
        if (early) this.lose(delivery, early);
        else this.#settle(delivery, GIVEN_BACK);
      } else {
        deliver.push(delivered);
        this.#watch(Math.min(delivery.due, delivery.end));
      }
    }
    if (deliver.length > 0) this.#post({ deliver });
  }

  /**
   * Returns when a lease is extended that has so long left: at half, but also of the queue's, as the server's clock may
   * be set.
   */
  #half(left: number): number {
    return Math.min(left, this.lease) / 2;
  }

  #delivery(message: [Buffer, Buffer, number, Buffer, unknown], now: number, begun: number | undefined): Delivery {
    this.#token += 1;
    const [id, payload, attempt, receipt, meta] = message;
    const delivered: Delivered = {
      token: this.#token,
      id: packed(id),
      payload: packed(payload),
      attempt,
      receipt: packed(receipt),
      meta: entries(meta).flatMap(([name, value]) => [name, packedDeep(value)]),
    };
    const found = entries(meta).find(([name]) => name === 'deadline')?.[1];
    const deadline = found === undefined ? undefined : Number(found);
    const told = this.serverTime.left(deadline, now);
    const left = told ?? this.lease - (now - (begun ?? now));
    // Otherwise it is extended at once, and then it is known how long that lasts.
    const isKnown = told !== undefined || begun !== undefined;
    return {
      delivered,
      end: now + left,
      due: isKnown ? now + this.#half(left) : now,
      deadline,
      heard: now,
      limit: Number.POSITIVE_INFINITY,
      decided: false,
      ended: false,
      late: false,
      unsaved: undefined,
    };
  }

  /** Takes a message from its handler, with an outcome if the message is still ours. */
  lose(delivery: Delivery, reason: LossReason, outcome?: Outcome): void {
    if (delivery.decided) return;
    const { delivered } = delivery;
    if (outcome) this.#settle(delivery, outcome);
    else this.#decide(delivery);
    if (!delivery.ended) this.#post({ lost: { token: delivered.token, reason } });
    this.notify({ kind: 'lost', lane: this.config.lane, delivered, reason });
    this.#freeIfDone(delivery);
  }

  /** A command has taken a message from this worker, or from another one. */
  noticed(notice: Buffer): void {
    const [reason = '', receipt] = notice.toString('latin1').split(/ (.*)/s);
    if (receipt === undefined) {
      this.extend(); // What is lost is not extended.
      return;
    }
    const delivery = this.held.get(receipt);
    if (delivery) {
      this.lose(delivery, reason as LossReason);
      return;
    }
    this.#early.set(receipt, reason as LossReason);
    if (this.#early.size > EARLY_NOTICES) this.#early.delete(this.#early.keys().next().value as string);
  }

  /** Has all leases extended now. */
  extend(): void {
    this.extendNow = this.held.size > 0;
    this.toReport.ring();
  }

  /** Notes the end of a lease that was extended by a command that was sent at `sent`. */
  extended(delivery: Delivery, deadline: unknown, sent: number): void {
    if (deadline === null) {
      this.lose(delivery, 'lease');
      return;
    }
    const now = performance.now();
    const grown = Number(deadline) - (delivery.deadline ?? Number.NEGATIVE_INFINITY);
    const passed = sent - delivery.heard;
    const mayBeCut = this.#maxLeaseMs !== 0;
    const isCut = mayBeCut && grown < passed;
    const jumped = delivery.deadline !== undefined && !isCut && hasJumped(grown, now - delivery.heard);
    let left = this.serverTime.left(Number(deadline), now);
    if (left === undefined) {
      left = this.lease - (now - sent);
      // MAXLEASE has cut it.
      if (mayBeCut && grown < passed * (1 - DRIFT) - ROUNDING_MS) left = Math.min(left, delivery.end + grown - now);
    }
    // MAXLEASE permits nothing more to a lease that has not grown.
    const isLongest = mayBeCut && grown === 0 && passed > ROUNDING_MS;
    let due = isLongest ? Number.POSITIVE_INFINITY : now + this.#half(left);
    // It is extended again at once, and then it is known how long that lasts.
    if (jumped && this.serverTime.expire()) due = now;
    Object.assign(delivery, { deadline: Number(deadline), heard: now, end: now + left, due });
    this.#watch(Math.min(delivery.due, delivery.end));
  }

  /** What the worker says when it has stopped. */
  get ending(): { givenBack: number; unanswered: number } {
    return { givenBack: this.#givenBack, unanswered: this.#unanswered.size };
  }

  /** The server has answered an outcome. */
  answered(report: Report): void {
    this.#unanswered.delete(report.delivery);
    if (report.outcome[1] === 'NOCOUNT') this.#givenBack += 1;
    this.#freeIfDone(report.delivery);
    this.toPop.ring();
  }

  /** Keeps reports that were not answered, to repeat them. */
  again(reports: Report[]): void {
    this.reports = [...reports, ...this.reports];
    this.recovering = true;
    this.collecting = false;
    this.toReport.ring();
  }

  /** Returns what is to be reported. */
  takeReports(): Report[] {
    const { reports } = this;
    this.reports = [];
    return reports;
  }

  /** The server has answered something. */
  heard(): void {
    this.config.shared[Shared.LastAnswer] = monotonic();
  }

  /** Pops have been refused since now, or succeed again. */
  popsAre(refused: boolean): void {
    const { shared } = this.config;
    if (!refused) shared[Shared.RefusedSince] = 0;
    else if (shared[Shared.RefusedSince] === 0) shared[Shared.RefusedSince] = monotonic();
  }

  /** Sends a notice to the main thread. */
  notify(notice: Notice): void {
    parentPort?.postMessage(notice);
  }

  /** Reports an error, and the message that it concerns, to the main thread. */
  complain(error: unknown, what = '', delivered?: Delivered): void {
    this.notify({ kind: 'error', lane: this.config.lane, text: `${what}${(error as Error).message}`, delivered });
  }

  /** Reports a failure to the main thread, with the new state of its message. */
  failed({ delivery: { delivered }, outcome }: Report, state: string | null): void {
    const error = outcome[outcome.indexOf('ERROR') + 1] as string;
    const text = outcome.includes('ERROR') ? decode(unpacked(error)) : '';
    this.notify({ kind: 'failed', lane: this.config.lane, delivered, text, isDead: state === 'dead' });
  }

  /** The thread of the handlers has ended, and another one takes its place. What had not begun is given back. */
  attach(port: MessagePort, error: string): void {
    clearTimeout(this.#stuck);
    this.#stuck = undefined;
    this.#port = port;
    this.#listen();
    const begun = this.config.shared[Shared.Begun] as number;
    const failed = ofError(new Error(`the thread of the handlers ended: ${error}`));
    for (const delivery of this.places.values()) {
      delivery.ended = true;
      if (delivery.decided) this.#freeIfDone(delivery);
      else this.#settle(delivery, delivery.delivered.token <= begun ? failed : GIVEN_BACK);
    }
  }

  /** Waits, but not when the lane is stopped or closed. */
  async pause(ms: number, until: 'stopped' | 'closed'): Promise<void> {
    const { signal } = until === 'stopped' ? this.#stopped : this.#closed;
    await sleep(ms, undefined, { signal }).catch(() => {});
  }

  /** Takes no further messages. */
  stop(): void {
    this.#stopped.abort();
    this.toPop.ring();
  }

  /** Ends all that it does by itself. */
  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#stuck);
    this.#port.close();
    this.toPop.ring();
    this.toReport.ring();
  }

  #listen(): void {
    this.#port.on('message', (message: FromHandlers) => {
      if (message.pong) {
        clearTimeout(this.#stuck);
        this.#stuck = undefined;
      }
      for (const [token, ...outcome] of message.ends ?? []) this.#ended(token, outcome as unknown as Outcome | []);
      const { begun, save } = message;
      const delivery = this.places.get(begun ?? save?.token ?? 0);
      if (!delivery || delivery.decided) return;
      if (save) {
        delivery.unsaved = { delivery, checkpoint: save.checkpoint };
        this.saves.push(delivery.unsaved);
        this.toReport.ring();
      } else {
        delivery.limit = performance.now() + (this.config.timeLimit ?? 0);
        this.#watch(delivery.limit);
      }
    });
  }

  #ended(token: number, outcome: Outcome | []): void {
    const delivery = this.places.get(token);
    if (!delivery || delivery.ended) return;
    delivery.ended = true;
    if (!delivery.decided) this.#settle(delivery, outcome.length > 0 ? (outcome as Outcome) : ACK);
    else this.#freeIfDone(delivery);
  }

  #settle(delivery: Delivery, outcome: Outcome): void {
    this.#decide(delivery);
    this.#unanswered.add(delivery);
    this.reports.push({ delivery, outcome });
    (this.collecting ? this.toPop : this.toReport).ring();
  }

  #decide(delivery: Delivery): void {
    delivery.decided = true;
    this.held.delete(delivery.delivered.receipt);
  }

  #freeIfDone(delivery: Delivery): void {
    if (!delivery.ended || this.#unanswered.has(delivery)) return;
    this.places.delete(delivery.delivered.token);
    this.toPop.ring();
  }

  #post(message: ToHandlers): void {
    this.#port.postMessage(message);
  }

  /** Looks at all deliveries at this instant. */
  #watch(instant: number): void {
    if (instant >= this.#timerAt) return;
    this.#timerAt = instant;
    clearTimeout(this.#timer);
    const pause = Math.min(Math.max(0, instant - performance.now()), LONGEST_TIMER_MS);
    this.#timer = setTimeout(() => this.#look(), Math.ceil(pause));
  }

  /**
   * Has the thread of handlers be ended if it does not answer: an endless loop would keep everything that it holds. The
   * thread may be held up by another handler, which has the time of its own limit.
   */
  #expectAnswer(): void {
    if (!this.config.hasThread || this.#stuck) return;
    this.#post({ ping: true });
    const limits = [...this.held.values()].map(({ limit }) => limit).filter(Number.isFinite);
    const pause = Math.min(Math.max(STUCK_MS, ...limits.map((limit) => limit - performance.now())), LONGEST_TIMER_MS);
    this.#stuck = setTimeout(() => this.notify({ kind: 'stuck', lane: this.config.lane }), pause);
  }

  #look(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = performance.now();
    let next = Number.POSITIVE_INFINITY;
    for (const delivery of [...this.held.values()]) {
      if (delivery.end <= now) {
        this.lose(delivery, 'lease');
      } else if (delivery.limit <= now) {
        const text = `the handler took longer than its time limit of ${this.config.timeLimit} ms`;
        this.lose(delivery, 'time limit', ['DQ.NACK', 'ERROR', packed(`TimeLimitExceeded: ${text}`)]);
        this.#expectAnswer();
      } else {
        if (delivery.due <= now) {
          this.extendNow = true;
          delivery.due = Number.POSITIVE_INFINITY; // Until it is extended.
        }
        next = Math.min(next, delivery.end, delivery.limit, delivery.due);
      }
    }
    for (const delivery of this.#unanswered) {
      if (!delivery.late && delivery.end <= now) {
        delivery.late = true; // It is reported nevertheless: an ack counts until another worker has the message.
        this.notify({ kind: 'lost', lane: this.config.lane, delivered: delivery.delivered, reason: 'lease' });
      } else if (!delivery.late) next = Math.min(next, delivery.end);
    }
    if (next !== Number.POSITIVE_INFINITY) this.#watch(next);
    if (this.extendNow) this.extend();
  }
}

function packedDeep(value: unknown): unknown {
  if (value instanceof Uint8Array || typeof value === 'string') return packed(value);
  if (value === null || typeof value !== 'object') return value;
  return Array.isArray(value) ? value.map(packedDeep) : entries(value).flat().map(packedDeep);
}
