/**
 * Where connections come from: a URL, options, or a client that exists. Queues use such a client as it is; workers open
 * connections of their own with its options, because a pop that waits occupies its connection.
 */
import type * as IoRedis from 'ioredis';
import { type Bytes, encode } from './bytes.js';
import { type Address, load, type Send, sendWithIoRedis, sendWithNodeRedis, type Target } from './drivers.js';
import type { Connection } from './options.js';

/** How a queue reaches its server. */
export interface Client {
  send: Send;
  close(): Promise<void>;
}

// After so long without an answer the connection of a queue is closed, and a push is repeated on another one.
const SILENCE_MS = 10_000;

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
  if (isNodeRedisOptions(given)) return nodeRedisTarget(given);
  return isInstalled('ioredis') ? ioRedisTarget(given) : nodeRedisTarget(asNodeRedisOptions(given));
}

/** Returns how a queue sends commands. A client that was given is left open at the end. */
export function clientOf(connection: Connection, target: Target): Client {
  const given = connection as Options;
  if (isIoRedis(given)) return { send: sendWithIoRedis(given as never), close: async () => {} };
  if (isNodeRedis(given)) {
    return { send: sendWithNodeRedis(given as never, 'masters' in given), close: async () => {} };
  }
  let opened: Promise<Client> | undefined;
  const own = () => {
    opened ??= target.library === 'ioredis' ? ownIoRedis(target) : ownNodeRedis(connection, target);
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  return { send: async (words) => (await own()).send(words), close: async () => (await opened)?.close() };
}

/** Returns the key of a queue. */
export function keyOf(target: Target, queue: Bytes): Buffer {
  return Buffer.concat([encode(target.prefix), encode(queue)]);
}

async function ownIoRedis(target: Target): Promise<Client> {
  const { Redis } = await load('ioredis');
  // The queue repeats its pushes itself, with an id, so commands are not to be repeated without its knowledge.
  const redis = new Redis({
    connectTimeout: 2000,
    enableReadyCheck: false,
    disableClientInfo: true,
    socketTimeout: SILENCE_MS,
    ...target.options,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    lazyConnect: true,
  });
  redis.on('error', () => {}); // Commands are rejected with it.
  return {
    send: sendWithIoRedis(redis),
    close: async () => redis.disconnect(),
  };
}

async function ownNodeRedis(connection: Connection, target: Target): Promise<Client> {
  const { createClient, createCluster, createSentinel } = await load('redis');
  const isPlain = typeof connection === 'object' && !(connection instanceof URL);
  const given: Options = isPlain && isNodeRedisOptions(connection) ? connection : target.options;
  const isCluster = 'rootNodes' in given;
  const isSentinel = 'sentinelRootNodes' in given;
  // biome-ignore lint/suspicious/noExplicitAny: options of three kinds
  const create = (isCluster ? createCluster : isSentinel ? createSentinel : createClient) as any;
  // A push that cannot be sent is repeated by its queue, until its time is over.
  const client = create({ disableClientInfo: true, disableOfflineQueue: true, ...given });
  client.on('error', () => {}); // Commands are rejected with it.
  await client.connect();
  const sentinel = { sendCommand: (...words: never[]) => client.sendCommand(false, ...words) };
  return { send: sendWithNodeRedis(isSentinel ? sentinel : client, isCluster), close: async () => client.destroy() };
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

function addressOf(node: unknown): Address {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node };
  if (typeof node === 'string') {
    const url = new URL(node.includes('://') ? node : `redis://${node}`);
    return { host: url.hostname || '127.0.0.1', port: Number(url.port || 6379) };
  }
  const { host = '127.0.0.1', port = 6379 } = node as Partial<Address>;
  return { host, port: Number(port) };
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
