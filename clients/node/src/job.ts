/** A message as its handler sees it, and the payloads of jobs. */
import { type Bytes, decode, encode, entries, headers, kindOf, shown } from './bytes.js';
import { DqError } from './errors.js';

/** A message that was popped, with bytes as Latin-1 strings, in which form they pass quickly from thread to thread. */
export interface Delivered {
  token: number;
  id: string;
  payload: string;
  attempt: number;
  receipt: string;
  /** The fields of `META`, as names and values. */
  meta: unknown[];
}

/** Returns bytes as they pass from thread to thread. */
export const packed = (bytes: Bytes): string => encode(bytes).toString('latin1');
/** Returns the bytes again. */
export const unpacked = (packed: string): Buffer => Buffer.from(packed, 'latin1');

/** Returns a value as JSON. `what` names it in the error for one that is none. */
export function jsonOf(value: unknown, what: string): string {
  const json = value instanceof Map || value instanceof Set ? undefined : JSON.stringify(value);
  if (json === undefined) throw new TypeError(`${what} cannot be written as JSON: it is ${kindOf(value)}`);
  return json;
}

/** Returns the payload of a job: JSON with its name and its data. */
export function envelope(name: string, data: unknown): string {
  if (typeof name !== 'string') throw new TypeError(`the name of a job must be a text, but is ${shown(name)}`);
  return `{"name":${JSON.stringify(name)}${data === undefined ? '' : `,"data":${jsonOf(data, 'the data of a job')}`}}`;
}

/** One delivery of a message. `Data` is the type of its data, `Result` that of what its handler returns. */
export class Job<Data = unknown, Result = unknown> {
  /** The name of its queue. */
  readonly queueName: string;
  readonly id: string;
  /** 1 on the first delivery. */
  readonly attempt: number;
  /** Names this delivery. */
  readonly receipt: string;
  /** The payload as it was pushed. */
  readonly payload: Buffer;
  /** When the handler began, in Unix milliseconds. */
  processedOn?: number;
  /** When the handler ended, in Unix milliseconds. */
  finishedOn?: number;
  /** What the handler returned. */
  returnvalue?: Result;
  /** The text of the error of the handler. */
  failedReason?: string;
  /** Other fields of the message: `created`, `due`, `deadline`, `priority`, `group`, `error`. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** What an earlier attempt, or this one, has saved last. */
  checkpoint: Buffer | undefined;
  #headers: Record<string, string> | undefined;
  #parsed: { name: string; data: Data } | null | undefined;
  readonly #save: (checkpoint: string) => void;
  /** @internal */
  readonly delivered: Delivered;

  /** @internal */
  constructor(queueName: string, delivered: Delivered, save: (checkpoint: string) => void) {
    this.delivered = delivered;
    this.queueName = queueName;
    this.id = decode(unpacked(delivered.id));
    this.attempt = delivered.attempt;
    this.receipt = decode(unpacked(delivered.receipt));
    this.payload = unpacked(delivered.payload);
    this.meta = Object.fromEntries(entries(delivered.meta));
    this.checkpoint = this.meta.checkpoint === undefined ? undefined : unpacked(this.meta.checkpoint as string);
    this.#save = save;
  }

  /** How many attempts were made before this one. */
  get attemptsMade(): number {
    return this.attempt - 1;
  }

  /** When the message was pushed, in Unix milliseconds. */
  get timestamp(): number {
    return Number(this.meta.created);
  }

  /** The headers of the message. */
  get headers(): Record<string, string> {
    this.#headers ??= headers(((this.meta.headers as string[] | undefined) ?? []).map(unpacked));
    return this.#headers;
  }

  /** The name with which the job was added. Throws if the message was not pushed with `add`. */
  get name(): string {
    return this.#job().name;
  }

  /** The data with which the job was added. Throws if the message was not pushed with `add`. */
  get data(): Data {
    return this.#job().data;
  }

  /** Stores how far the work has come, up to 65536 bytes, for the next attempt and for operators. Does not wait. */
  save(checkpoint: Bytes): void {
    this.checkpoint = encode(checkpoint, 'a checkpoint');
    this.#save(packed(checkpoint));
  }

  /** Returns the job for logs. */
  toJSON(): Record<string, unknown> {
    const { queueName, id, attempt, processedOn, finishedOn, returnvalue, failedReason } = this;
    return { queueName, id, attempt, processedOn, finishedOn, returnvalue, failedReason };
  }

  /** @internal Returns whether the message was pushed with `add`, or by a program that did the same. */
  isJob(): boolean {
    if (this.#parsed === undefined) {
      let found: unknown;
      try {
        found = JSON.parse(this.payload.toString());
      } catch {}
      const isJob = typeof (found as { name?: unknown } | null | undefined)?.name === 'string';
      this.#parsed = isJob ? (found as { name: string; data: Data }) : null;
    }
    return this.#parsed !== null;
  }

  #job(): { name: string; data: Data } {
    if (!this.isJob()) {
      throw new DqError('the payload is not the JSON of a job, {"name": …, "data": …}; its bytes are in job.payload');
    }
    return this.#parsed as { name: string; data: Data };
  }
}
