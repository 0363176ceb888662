/** Options as words of commands. What is not an option is refused, and names of BullMQ with the name to use instead. */
import { type Bytes, encode, shown, type Word } from './bytes.js';

/**
 * A URL (`redis://`, `rediss://`, `unix://`), options of ioredis or of node-redis (its clusters and Sentinels too), or
 * a client that exists: `Redis` or `Cluster` of ioredis, a client of node-redis, or a cluster of node-redis 6.
 */
// biome-ignore lint/suspicious/noExplicitAny: the types of both clients are optional, and differ between their versions
export type Connection = string | URL | Record<string, any>;

/** A point in time: a `Date`, or Unix milliseconds since March 1973. */
export type Time = Date | number;

/** A job, or a message of any bytes. */
export type Message<Data = unknown> = Bytes | { name: string; data: Data };

/** What a pause suspends: what the queue delivers, what it accepts, both, or what it delivers of one group. */
export type Flow = 'out' | 'in' | 'all' | { group: Bytes };

/** What all messages may have. Durations are in milliseconds. */
export interface MessageOptions {
  /** -128 to 127, 0 by default. Among ready messages, a higher one is delivered first. */
  priority?: number;
  /**
   * How often the message is delivered at most, as in BullMQ: 1 more than the `retries` of the server. `Infinity`: no
   * limit. By default that of the queue.
   */
  attempts?: number;
  /** How long each delivery may take if its worker has no `lease` and does not extend it. */
  lease?: number;
  /** The message becomes dead if it is not completed within this time. */
  ttl?: number;
  /** Messages of a group are delivered in order, by default one at a time. */
  group?: Bytes;
  /** Metadata besides the payload. */
  headers?: Record<string, Bytes>;
}

/** Options of messages that are pushed together. */
export interface PushManyOptions extends MessageOptions {
  /** The message is due this long after now. */
  delay?: number;
  /** The message is due at this time. */
  at?: Time;
  /** Replace a message that has the id. */
  replace?: boolean;
  /** With `replace`: due no later than this long after the first push of the chain. */
  maxWait?: number;
  /** With `replace`: if that message is being worked on, take its place when the delivery ends. */
  later?: boolean;
  /** How long the message and its result are kept after its completion. */
  retain?: number;
  /** The batch of which the message is a member until it ends. */
  batch?: Bytes;
  /** How often the message was delivered before its push: its next delivery is one more. */
  attempt?: number;
  /** The error of the last delivery that the message had before its push. */
  error?: Bytes;
  /** The checkpoint that the message had before its push. */
  checkpoint?: Bytes;
  /** The message is dead from its push on. */
  dead?: boolean;
  /** With `dead`: why, by default `rejected`. */
  reason?: 'retries' | 'rejected' | 'expired';
}

/** Options of a push. */
export interface PushOptions extends PushManyOptions {
  /** An id of your own, unique in the queue. */
  id?: Bytes;
}

const FOLLOW = ['id', 'delay', 'priority', 'attempts', 'lease', 'group', 'headers'] as const;
/** Options of the message that follows a batch. */
export type FollowOptions = Pick<PushOptions, (typeof FOLLOW)[number]>;

/** Options of a schedule: `every` or `cron`, and what each run has. */
export interface ScheduleOptions extends MessageOptions {
  /** A run is due at each multiple of this interval since the Unix epoch. */
  every?: number;
  /** Moves all runs of `every` by this time. */
  offset?: number;
  /** A cron expression of five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. */
  cron?: string;
  /** The time zone of `cron`, such as `Europe/Berlin`; UTC by default. */
  tz?: string;
  /** When the first run is due. */
  at?: Time;
  /** The last instant at which a run may be due. */
  until?: Time;
  /** The series ends after this many runs. */
  times?: number;
}

/** When a message is due, or before which others it is delivered. */
export type RescheduleOptions = Pick<PushManyOptions, 'delay' | 'at' | 'priority'>;

/** Which delayed messages become due now. */
export interface PromoteOptions {
  count?: number;
  /** Those that are due by this time. */
  until?: Time;
}

/** Which dead messages become live again. */
export interface RedriveOptions {
  /** The oldest ones. */
  count?: number;
  /** They are due this long after now. */
  delay?: number;
  /** Those that have been dead for at least this long. */
  older?: number;
  /** Those that died for this reason. */
  reason?: 'retries' | 'rejected' | 'expired';
}

/** Which messages are removed. */
export interface PurgeOptions {
  count?: number;
  group?: Bytes;
  /** Schedules, too. */
  recurring?: boolean;
  /** Those that have been in their state for at least this long. */
  older?: number;
}

/** Which messages are looked at. */
export type PeekOptions = Pick<PurgeOptions, 'count' | 'group'>;

/** Which messages are counted. */
export type LenOptions = Pick<PurgeOptions, 'group'>;

const OF_BOTH = ['lease', 'delay', 'attempts', 'ttl', 'retain'] as const;
/** Settings of a queue: see docs/settings.md. Durations are in milliseconds. */
export interface Settings extends Pick<PushOptions, (typeof OF_BOTH)[number]> {
  maxLease?: number;
  /** The first wait after a nack, and the longest. */
  backoff?: [base: number, max: number];
  /** A percentage. It is set only together with `backoff`. */
  jitter?: number;
  maxLen?: number;
  maxInflight?: number;
  /** At most so many deliveries in any span of this time. */
  rate?: [deliveries: number, ms: number];
  deadLen?: number;
  deadTtl?: number;
  doneLen?: number;
  maxPayload?: number;
  groupInflight?: number;
  groupRate?: [deliveries: number, ms: number];
  errors?: number;
  groupOrder?: 'due' | 'turn';
  dedupe?: number;
  /** The words of `FORWARD`, such as `STREAM orders TRIM 1000`. */
  forward?: string;
  /** The words of `DEADFORWARD`, such as `QUEUE mail-dead`. */
  deadForward?: string;
}

type Write = (value: never, name: string) => Word[];

// The first instant that the server takes, in March 1973. What is earlier looks like seconds unless it is a `Date`.
const FIRST_MS = 100_000_000_000;

const wrong = (name: string, right: string, value: unknown) =>
  new TypeError(`${name} must be ${right}, but is ${shown(value)}`);
const number: Write = (value: number, name) => {
  if (!Number.isInteger(value)) throw wrong(name, 'a whole number', value);
  return [String(value)];
};
const whole: Write = (value: number, name) => {
  const words = number(value as never, name);
  if (value < 0) throw wrong(name, 'a whole number of at least 0', value);
  return words;
};
const priority: Write = (value: number, name) => {
  const words = number(value as never, name);
  if (value < -128 || value > 127) throw wrong(name, 'a whole number from -128 to 127', value);
  return words;
};
const pair: Write = (value: number[], name) => {
  if (!Array.isArray(value) || value.length !== 2) throw wrong(name, 'two whole numbers, [first, second]', value);
  return value.flatMap((each) => number(each as never, name));
};
const split: Write = (value: string, name) => {
  if (typeof value !== 'string') throw wrong(name, 'a text', value);
  return value.trim().split(/\s+/);
};
const bytes: Write = (value: Bytes, name) => [encode(value, name)];
const time: Write = (value: Time, name) => {
  if (value instanceof Date) return number(Math.max(value.getTime(), FIRST_MS) as never, name);
  if (value < FIRST_MS) throw wrong(name, 'a Date or Unix milliseconds since March 1973, not seconds', value);
  return number(value as never, name);
};
const flag: Write = (value: boolean, name) => {
  if (value !== true) throw wrong(name, 'true or false', value);
  return [];
};
const retries: Write = (value: number) => {
  checkWhole({ attempts: value }, 1, Number.POSITIVE_INFINITY);
  return [value === Number.POSITIVE_INFINITY ? '-1' : String(value - 1)];
};
const headerWords: Write = (value: Record<string, Bytes>) => {
  const given = Object.entries(headersOf(value));
  return [String(given.length), ...given.flatMap(([name, each]) => [encode(name), encode(each, `the header ${name}`)])];
};

/** Returns a copy of the headers of a message. */
export function headersOf(given: Record<string, Bytes> | null | undefined): Record<string, Bytes> {
  const headers = given ?? {};
  if (typeof headers !== 'object' || Symbol.iterator in headers) {
    throw wrong('headers', 'an object with a text or bytes for each name', headers);
  }
  return { ...headers };
}

/**
 * Refuses options that are given but are not whole numbers in this range. `Infinity` is one if it is the end of the
 * range.
 */
export function checkWhole(given: object, least: number, most = Number.MAX_SAFE_INTEGER): void {
  for (const [name, value] of Object.entries(given)) {
    const isWhole = Number.isInteger(value) || value === most;
    if (value !== undefined && !(isWhole && value >= least && value <= most)) {
      throw wrong(name, `a whole number of at least ${least}`, value);
    }
  }
}

// How the values of options are written. The word of an option is its name, but for `attempts`. Words are sent in this
// order: some belong to the one before.
const written = (write: Write, ...names: string[]): Record<string, Write> =>
  Object.fromEntries(names.map((name) => [name, write]));
const SETTINGS: Record<string, Write> = {
  ...written(pair, 'rate', 'groupRate', 'backoff'),
  ...written(number, 'jitter', 'maxLease', 'maxLen', 'maxInflight', 'deadLen', 'deadTtl', 'doneLen', 'maxPayload'),
  ...written(number, 'groupInflight', 'errors', 'dedupe'),
  ...written(split, 'forward', 'deadForward'),
  groupOrder: bytes,
};
const OPTIONS: Record<string, Write> = {
  ...written(bytes, 'id', 'group', 'batch', 'reason', 'error', 'checkpoint'),
  ...written(whole, 'delay', 'lease', 'ttl', 'retain', 'count', 'older', 'attempt'),
  priority,
  attempts: retries,
  headers: headerWords,
  ...written(flag, 'recurring', 'replace', 'dead'),
  maxWait: whole,
  later: flag,
  ...written(number, 'every', 'offset'),
  ...written(bytes, 'cron', 'tz'),
  ...written(time, 'at', 'until'),
  times: number,
  ...SETTINGS,
};

// Options of BullMQ that have another name here, or are found elsewhere.
const ELSEWHERE: Record<string, string> = {
  jobId: 'give id',
  retries: 'give attempts, which counts the first delivery, too: 1 more',
  removeOnComplete: 'a completed message is removed; retain: ms keeps it and its result for a time',
  removeOnFail: 'dead messages are kept as the settings DEADLEN and DEADTTL of the queue say',
  backoff: 'the backoff is a setting of the queue (queue.declare), or throw new RetryError({after})',
  repeat: 'use queue.schedule',
  deduplication: 'give id, and the setting DEDUPE of the queue, or replace: true with a delay',
  prefix: 'the name of a queue is its key; put the prefix before it',
  lockDuration: 'give lease',
  limiter: 'the rate limit is a setting of the queue (queue.declare)',
};

/** Refuses options that are not known. */
export function check(given: object, known: readonly string[]): void {
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    const instead = ELSEWHERE[name];
    throw new TypeError(
      instead
        ? `the option ${name} means nothing here: ${instead}`
        : `there is no option ${name}; the options are ${[...known].sort().join(', ')}`,
    );
  }
}

/** Returns a function that makes words of the options of a command, and refuses others. */
function writer<Options extends object>(...known: (keyof Options & string)[]): (given: Options) => Word[] {
  const ordered = Object.keys(OPTIONS).filter((name) => known.includes(name as never));
  return (given) => {
    check(given, known);
    return ordered.flatMap((name) => {
      const value = given[name as keyof Options];
      if (value === undefined || value === null || value === false) return [];
      if (name === 'headers' && Object.keys(value).length === 0) return [];
      return [name === 'attempts' ? 'RETRIES' : name.toUpperCase(), ...(OPTIONS[name] as Write)(value as never, name)];
    });
  };
}

const MESSAGE = ['priority', 'attempts', 'lease', 'ttl', 'group', 'headers'] as const;
const PAST = ['attempt', 'error', 'checkpoint', 'dead', 'reason'] as const;
const PUSH_MANY = [...MESSAGE, ...PAST, 'delay', 'at', 'replace', 'maxWait', 'later', 'retain', 'batch'] as const;
const SCHEDULE = [...MESSAGE, 'every', 'offset', 'cron', 'tz', 'at', 'until', 'times'] as const;

/** The words of the options of each command. */
export const wordsOf = {
  push: writer<PushOptions>(...PUSH_MANY, 'id'),
  pushMany: writer<PushManyOptions>(...PUSH_MANY),
  follow: writer<FollowOptions>(...FOLLOW),
  schedule: writer<ScheduleOptions>(...SCHEDULE),
  reschedule: writer<RescheduleOptions>('delay', 'at', 'priority'),
  promote: writer<PromoteOptions>('count', 'until'),
  redrive: writer<RedriveOptions>('count', 'delay', 'older', 'reason'),
  purge: writer<PurgeOptions>('count', 'group', 'recurring', 'older'),
  peek: writer<PeekOptions>('count', 'group'),
  len: writer<LenOptions>('group'),
  settings: writer<Settings>(...OF_BOTH, ...(Object.keys(SETTINGS) as (keyof Settings)[])),
};
