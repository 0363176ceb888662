/**
 * Where connections come from: a URL, options, or a client that exists. Queues use such a client as it is; workers open
 * connections of their own with its options, because a pop that waits occupies its connection.
 */
import { type EventEmitter, errorMonitor } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import type * as IoRedis from 'ioredis';
import { type Bytes, encode, type Word } from './bytes.js';
import {
  type Address,
  addressOf,
  type Link,
  open,
  placeOf,
  type Send,
  type Sending,
  sendWithIoRedis,
  sendWithNodeRedis,
  type Target,
} from './drivers.js';
import { ConnectionLost, DqError } from './errors.js';
import type { Connection } from './options.js';
import { isTransient } from './refusals.js';
import { answered, inTime, Route } from './route.js';

/** How a queue reaches its server. */
export interface Client {
  /** After so long without an answer a push is repeated, on another connection. */
  readonly silenceMs: number;
  /** Returns how to send commands within a time. Nothing has been sent if it rejects. */
  open(ms: number): Promise<SendInTime>;
  close(): void;
}

type SendInTime = (words: Word[], ms: number, sending?: Sending) => Promise<unknown>;

type Options = Record<string, unknown>;
interface ExistingCluster {
  startupNodes?: unknown[];
  options: Options;
  nodes: unknown;
}

/** Returns the options with which a worker opens connections. */
export function targetOf(connection: Connection): Target {
  const given = typeof connection === 'string' || connection instanceof URL ? ofUrl(connection) : connection;
  if (isIoRedis(given)) {
    const cluster = given as unknown as ExistingCluster;
    if (!('isCluster' in given) || !given.isCluster) return ioRedisTarget(given.options as Options);
    const { redisOptions, keyPrefix } = cluster.options as { redisOptions?: Options; keyPrefix?: string };
    return { ...ioRedisTarget({ keyPrefix, ...redisOptions }), seeds: (cluster.startupNodes ?? []).map(addressOf) };
  }
  if (isNodeRedis(given)) {
    const options = given.options ?? given._options;
    if (!options) {
      throw new TypeError('the options of this client cannot be read: pass them instead of the client');
    }
    return nodeRedisTarget(options);
  }
  const isOfNodeRedis = isNodeRedisOptions(given);
  if (!isOfNodeRedis && isInstalled('ioredis')) return ioRedisTarget(given);
  if (!isInstalled('redis')) {
    const wanted = isOfNodeRedis ? 'redis' : 'ioredis or redis';
    throw new TypeError(`install ${wanted}; if it is, tell your bundler that dq-client is external`);
  }
  return nodeRedisTarget(isOfNodeRedis ? given : asNodeRedisOptions(given));
}

/** Returns how a queue reaches its server. A client that was given is left open at the end. */
export function clientOf(connection: Connection, target: Target): Client {
  const given = connection as Options;
  if (isIoRedis(given)) return new GivenClient(given, target, sendWithIoRedis(given));
  if (isNodeRedis(given)) return new GivenClient(given, target, sendWithNodeRedis(given as never, 'masters' in given));
  return new OwnClient(target);
}

// The last error of each client that was given, and how often it got ready. What such a client rejects commands with
// often has no cause.
const known = new WeakMap<object, { lastError: Error | undefined; ready: number }>();

/** A client that exists, which repeats and waits as it likes, but not longer than the queue. */
class GivenClient implements Client {
  readonly silenceMs = Number.POSITIVE_INFINITY;
  readonly #client: Options;
  readonly #send: Send;
  readonly #place: string;
  readonly #counts: boolean; // Whether it is known how often a command was sent.
  #db: number;

  constructor(client: Options, target: Target, send: Send) {
    this.#client = client;
    this.#send = send;
    this.#place = placeOf(target);
    this.#counts = target.library === 'ioredis';
    this.#db = target.library === 'ioredis' ? target.db : 0;
    if (known.has(client)) return;
    const own = { lastError: undefined as Error | undefined, ready: this.#isReady ? 1 : 0 };
    known.set(client, own);
    const emitter = client as unknown as EventEmitter;
    emitter.on(errorMonitor, (error: Error) => {
      own.lastError = error;
    });
    emitter.on('ready', () => {
      own.ready += 1;
    });
  }

  /** Whether it has a connection. A client of a cluster does not tell. */
  get #isReady(): boolean {
    const { status, isReady } = this.#client as { status?: string; isReady?: boolean };
    return isReady ?? (status === undefined || status === 'ready');
  }

  async open(ms: number): Promise<SendInTime> {
    // ioredis goes on in database 0 if the server refuses the one of its options.
    const { condition } = this.#client as { condition?: { select?: number } };
    if (this.#db > 0) await this.#sent(['SELECT', String(condition?.select ?? this.#db)], ms);
    this.#db = 0;
    return (words, left, sending) => this.#sent(words, left, sending);
  }

  async #sent(words: Word[], ms: number, sending: Sending = { times: 0 }): Promise<unknown> {
    const own = known.get(this.#client) as { lastError: Error | undefined; ready: number };
    const unsent = this.#client.isReady === false ? new AbortController() : undefined;
    const wasAway = !this.#isReady;
    const ready = own.ready;
    let isKept = false; // Whether the client, which cannot be told otherwise, may send it when it has a connection.
    const late = () => {
      isKept = unsent === undefined;
      unsent?.abort();
    };
    try {
      const what = `the server at ${this.#place} did not answer`;
      const reply = await inTime(this.#send(words, Object.assign(sending, { unsent: unsent?.signal })), ms, late, what);
      own.lastError = undefined;
      return reply;
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      const mayBeSent = this.#counts ? sending.times > 0 : !wasAway || ready !== own.ready;
      if (!mayBeSent && !isKept) error.mayHaveRun = false;
      const last = own.lastError;
      const why = last?.message ?? this.#place;
      if (error.message.includes(why)) throw error;
      const { mayHaveRun } = error;
      throw Object.assign(new ConnectionLost(`${error.message}: ${why}`, { cause: last ?? error.cause }), {
        mayHaveRun,
      });
    }
  }

  close(): void {}
}

// A connection that was idle for so long may have been closed, which the event loop learns when it next turns.
const IDLE_MS = 500;
// A command is sent to another node of a cluster this often. Nodes can disagree for a moment.
const MOST_HOPS = 5;

/** A connection of its own, which is opened when it is needed, and again after it has closed. */
class OwnClient implements Client {
  readonly silenceMs = 4000;
  readonly #route: Route;
  #opened: Promise<Link> | undefined;
  #link: Link | undefined;
  #isClosed = false;
  #used = 0;

  constructor(target: Target) {
    this.#route = new Route(target);
  }

  async open(ms: number): Promise<SendInTime> {
    if (this.#link && performance.now() - this.#used > IDLE_MS) await turn();
    this.#used = performance.now();
    const opened = this.#reach();
    const link = this.#link ?? (await this.#reached(opened, ms));
    return (words, left) => this.#sent(opened, link, words, left);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#opened) this.#drop(this.#opened);
  }

  #reach(): Promise<Link> {
    if (this.#isClosed) throw new DqError('this queue is closed: open it again with new Queue');
    if (this.#opened) return this.#opened;
    const opened = this.#route.open();
    this.#opened = opened;
    opened.then(
      (link) => {
        if (this.#opened === opened) this.#link = link;
        link.onClose(() => this.#forget(opened));
      },
      (error) => {
        this.#route.learn(error);
        this.#forget(opened);
      },
    );
    return opened;
  }

  #reached(opened: Promise<Link>, ms: number): Promise<Link> {
    return inTime(opened, ms, () => this.#drop(opened), `no connection to ${placeOf(this.#route.target)}`);
  }

  async #sent(opened: Promise<Link>, link: Link, words: Word[], ms: number, hops = MOST_HOPS): Promise<unknown> {
    try {
      return await answered(link, link.send(words), ms);
    } catch (error) {
      const asked = /^ASK \d+ (.+):(\d+)$/.exec((error as Error).message);
      if (asked) return this.#asking({ host: asked[1] as string, port: Number(asked[2]) }, words, ms);
      const isMoved = isTransient(error) && this.#route.learn(error);
      if (error instanceof ConnectionLost) this.#drop(opened);
      if (!isMoved || hops === 0) throw error;
      this.#forget(opened);
      void link.ping().then(link.close, link.close); // What was sent before is answered first.
      const next = this.#reach();
      return this.#sent(next, await this.#reached(next, ms), words, ms, hops - 1);
    }
  }

  /** Sends a command to the node to which a slot is moving. */
  async #asking(address: Address, words: Word[], ms: number): Promise<unknown> {
    const link = await open(this.#route.target, address);
    try {
      return (await answered(link, Promise.all([link.send(['ASKING']), link.send(words)]), ms))[1];
    } finally {
      link.close();
    }
  }

  #drop(opened: Promise<Link>): void {
    this.#forget(opened);
    opened.then((link) => link.close()).catch(() => {});
  }

  #forget(opened: Promise<Link>): void {
    if (this.#opened !== opened) return;
    this.#opened = undefined;
    this.#link = undefined;
  }
}

/** Returns the key of a queue. */
export function keyOf(target: Target, queue: Bytes): Buffer {
  return Buffer.concat([encode(target.prefix), encode(queue)]);
}

function ioRedisTarget(options: Options): Target {
  if (options.Connector) {
    throw new TypeError(
      'a Connector of your own cannot be passed to the thread of a worker: pass host and port, or a URL',
    );
  }
  const { keyPrefix, ...rest } = options;
  const target = { library: 'ioredis', prefix: textOf(keyPrefix), db: databaseOf(options.db) } as const;
  return { ...target, options: passed({ ...rest, replyMapping: 'legacy' }) };
}

function nodeRedisTarget(given: Options): Target {
  const { rootNodes, defaults, sentinelRootNodes, nodeClientOptions, name, ...rest } = given as Record<string, Options>;
  const roots = rootNodes as unknown as Options[] | undefined;
  const sentinels = sentinelRootNodes as unknown as Address[] | undefined;
  const options: Options = roots
    ? { ...defaults }
    : sentinels
      ? { ...nodeClientOptions }
      : { ...rest, ...(name && { name }) };
  if (options.credentialsProvider) {
    throw new TypeError('a credentialsProvider cannot be passed to the thread of a worker: pass username and password');
  }
  const url = typeof options.url === 'string' ? new URL(options.url) : undefined;
  const { keyPrefix, ...kept } = options;
  const target: Target = {
    library: 'redis',
    prefix: textOf(keyPrefix),
    db: databaseOf(options.database ?? url?.pathname.slice(1)),
    options: passed(kept),
  };
  if (roots) target.seeds = roots.map((root) => addressOf(root.url ?? root.socket));
  if (sentinels) target.sentinels = { name: String(name), addresses: sentinels.map(addressOf) };
  return target;
}

/** Returns the options of ioredis for a URL. */
function ofUrl(given: string | URL): Options {
  const url = new URL(given);
  if (!['redis:', 'rediss:', 'unix:'].includes(url.protocol)) {
    throw new TypeError(`the URL begins with ${url.protocol}//: give redis://, rediss:// or unix://`);
  }
  const { db, protocol, ...unknown } = Object.fromEntries(url.searchParams);
  for (const name of Object.keys(unknown)) {
    throw new TypeError(`the URL has a parameter ${name}: known are db and protocol; give anything else as options`);
  }
  const options: Options = { username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  for (const name of ['username', 'password']) if (options[name] === '') delete options[name];
  if (protocol !== undefined) {
    if (!/^[23]$/.test(protocol)) throw new TypeError(`protocol must be 2 or 3, but is ${protocol}`);
    options.protocol = Number(protocol);
  }
  if (url.protocol === 'unix:') return { ...options, path: decodeURIComponent(url.pathname), db: databaseOf(db) };
  if (url.protocol === 'rediss:') options.tls = {};
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  return { ...options, host, port: Number(url.port || 6379), db: databaseOf(url.pathname.slice(1) || db) };
}

/** Returns the number of a database, 0 if none is given. */
function databaseOf(given: unknown): number {
  if (given !== undefined && given !== null && !/^\d*$/.test(String(given))) {
    throw new TypeError(`the database must be a number of 0 or more, but is ${String(given)}`);
  }
  return Number(given ?? 0);
}

/** Returns the options of node-redis for those of ioredis that a URL or a plain object has. */
function asNodeRedisOptions({ host, port, path, tls, username, password, db, protocol, ...rest }: Options): Options {
  const unknown = Object.keys(rest);
  if (unknown.length > 0) {
    throw new TypeError(`ioredis is not installed, and these are no options of node-redis: ${unknown.join(', ')}`);
  }
  const socket = path ? { path } : { host, port, ...(tls ? { tls: true, ...(tls as Options) } : {}) };
  return { socket, username, password, database: db, ...(protocol ? { RESP: protocol } : {}) };
}

// Clients are known by their methods: there may be several copies of a package.
function isIoRedis(given: Options): given is Options & IoRedis.Redis {
  return typeof given.callBuffer === 'function';
}

function isNodeRedis(given: Options): given is Options & { options?: Options; _options?: Options } {
  return typeof given.sendCommand === 'function' && !isIoRedis(given);
}

function isNodeRedisOptions(given: Options): boolean {
  return ['url', 'socket', 'rootNodes', 'sentinelRootNodes', 'database', 'RESP'].some((name) => name in given);
}

function isInstalled(name: string): boolean {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}

function textOf(prefix: unknown): string {
  return prefix === undefined || prefix === null ? '' : String(prefix);
}

// Options of both clients that concern other commands than those of a worker, or how replies look.
const NOT_OF_WORKERS = [
  ...['commandTimeout', 'blockingTimeout', 'socketTimeout', 'reconnectOnError', 'stringNumbers', 'scripts'],
  ...['clientSideCache', 'commandOptions', 'modules', 'functions', 'maintNotifications'],
];

/** Returns the options that are passed to the thread of a worker. */
function passed(options: Options): Options {
  const kept = Object.entries(options).filter(([name]) => !NOT_OF_WORKERS.includes(name));
  return cloneable(Object.fromEntries(kept)) as Options;
}

/** Returns what can be passed to another thread: functions cannot, and have no meaning there. */
function cloneable(value: unknown): unknown {
  if (typeof value === 'function') return undefined;
  if (Array.isArray(value)) return value.map(cloneable);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const copied = Object.entries(value).map(([name, each]) => [name, cloneable(each)]);
  return Object.fromEntries(copied.filter(([, each]) => each !== undefined));
}
