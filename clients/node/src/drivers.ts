/**
 * The two Redis clients that this package works with, behind one interface. They are loaded when they are needed.
 * What is opened here does not reconnect by itself: its owner knows what to repeat, and opens another one.
 */
import type * as IoRedis from 'ioredis';
import type * as NodeRedis from 'redis';
import { type Bytes, encode, text, type Word } from './bytes.js';
import { ConnectionLost, type DqError } from './errors.js';
import { refused } from './refusals.js';

/** Which client leads to the server, and its options without what cannot be passed to another thread. */
export interface Target {
  library: 'ioredis' | 'redis';
  /** Of one server, or of each server of a cluster. */
  options: Record<string, unknown>;
  /** Some servers of a cluster. */
  seeds?: Address[];
  /** node-redis asks these Sentinels for the master of a name; ioredis does so by itself. */
  sentinels?: { name: string; addresses: Address[] };
  /** Put before the name of each queue. */
  prefix: string;
  db: number;
}

/** Where a server listens. */
export interface Address {
  host: string;
  port: number;
}

/** Sends a command. Rejects with an error of this package. */
export type Send = (words: Word[]) => Promise<unknown>;

/** One connection. */
export interface Link {
  send: Send;
  /** Resolves once the server has confirmed the subscription. May be called again. */
  subscribe(channel: Buffer, heard: (notice: Buffer) => void): Promise<unknown>;
  /** Resolves or is refused if the server answers. */
  ping(): Promise<unknown>;
  onClose(closed: () => void): void;
  close(): void;
}

// How long a server may take to accept a connection.
const CONNECT_MS = 2000;
// How long it may take to answer the first commands besides.
const GREETING_MS = 5000;

/** Opens a connection to a server, to an address of a cluster if one is given. */
export function open(target: Target, address?: Address): Promise<Link> {
  return translating(() => (target.library === 'ioredis' ? openIoRedis : openNodeRedis)(target, address));
}

/** Loads one of the clients. */
export function load(library: 'ioredis'): Promise<typeof IoRedis>;
export function load(library: 'redis'): Promise<typeof NodeRedis>;
export function load(library: 'ioredis' | 'redis'): Promise<unknown> {
  return library === 'ioredis' ? import('ioredis') : import('redis');
}

/** Returns the error of this package for one of a client. */
function translated(error: unknown): DqError {
  const { name = '', message = String(error) } = error as Error;
  const kind = (error as Error).constructor?.name ?? '';
  const isReply = name === 'ReplyError' || /^(SimpleError|BlobError|ErrorReply)$/.test(kind);
  return isReply ? refused(message, error) : new ConnectionLost(message || name, { cause: error });
}

async function translating<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw translated(error);
  }
}

/** Returns how commands are sent with ioredis. */
export function sendWithIoRedis(redis: Pick<IoRedis.Redis, 'callBuffer'>): Send {
  return ([name, ...words]) => translating(() => redis.callBuffer(String(name), words));
}

/** Returns how commands are sent with node-redis. A client of a cluster wants the key besides. */
export function sendWithNodeRedis(
  client: { sendCommand: (...given: never[]) => Promise<unknown> },
  isCluster: boolean,
): Send {
  // Bulk strings (RESP type $) arrive as bytes.
  const options = { typeMapping: { 36: Buffer } };
  const send = client.sendCommand.bind(client) as (...given: unknown[]) => Promise<unknown>;
  return (words) => translating(() => (isCluster ? send(words[1], false, words, options) : send(words, options)));
}

async function openIoRedis(target: Target, address?: Address): Promise<Link> {
  const { Redis } = await load('ioredis');
  const redis = new Redis({
    connectTimeout: CONNECT_MS,
    ...target.options,
    ...address,
    lazyConnect: true,
    enableReadyCheck: false,
    disableClientInfo: true,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableAutoPipelining: false,
  });
  let lastError: unknown;
  redis.on('error', (error) => {
    lastError = error;
  });
  try {
    await greeted(redis.connect(), () => redis.disconnect());
  } catch (error) {
    redis.disconnect();
    throw lastError ?? error;
  }
  return {
    send: sendWithIoRedis(redis),
    subscribe(channel, heard) {
      redis.removeAllListeners('messageBuffer').on('messageBuffer', (_: Buffer, notice: Buffer) => heard(notice));
      return translating(() => redis.subscribe(channel));
    },
    ping: () => redis.ping(),
    onClose: (closed) => redis.once('end', closed),
    close: () => redis.disconnect(),
  };
}

async function openNodeRedis(target: Target, address?: Address): Promise<Link> {
  const found = target.sentinels ? await masterOf(target) : address;
  const client = await connectNodeRedis(target, found);
  return {
    send: sendWithNodeRedis(client, false),
    // It finds listeners by text. A queue whose name is not UTF-8 learns of losses at half time.
    subscribe: (channel, heard) => translating(() => client.subscribe(channel.toString(), heard, true)),
    ping: () => client.ping(),
    onClose: (closed) => client.once('dq-closed' as never, closed),
    close: () => (client.isOpen ? client.destroy() : undefined),
  };
}

async function connectNodeRedis(target: Target, address?: Address, more: object = {}) {
  const { createClient } = await load('redis');
  const { socket, url, ...options } = target.options;
  const client = createClient({
    ...options,
    ...(address ? {} : { url: url as string }),
    disableClientInfo: true,
    socket: { connectTimeout: CONNECT_MS, ...(socket as object), ...address, reconnectStrategy: false },
    ...more,
  } as never) as unknown as NodeRedis.RedisClientType;
  client.on('error', () => client.emit('dq-closed' as never));
  client.on('end', () => client.emit('dq-closed' as never));
  await greeted(client.connect(), () => client.destroy());
  return client;
}

/** Gives up a connection whose server accepts it and then says nothing. */
async function greeted(connected: Promise<unknown>, close: () => void): Promise<void> {
  const timer = setTimeout(close, GREETING_MS);
  await connected.finally(() => clearTimeout(timer));
}

async function masterOf({ sentinels, ...target }: Target): Promise<Address> {
  let failure: unknown = new ConnectionLost('no Sentinel was given');
  for (const sentinel of sentinels?.addresses ?? []) {
    try {
      const client = await connectNodeRedis(target, sentinel, {
        database: 0,
        username: undefined,
        password: undefined,
      });
      const words = ['SENTINEL', 'get-master-addr-by-name', sentinels?.name ?? ''];
      const reply = (await client.sendCommand(words)) as unknown as Bytes[] | null;
      client.destroy();
      const [host, port] = (reply ?? []).map((word) => text(typeof word === 'string' ? encode(word) : word));
      if (host) return { host, port: Number(port) };
      failure = new ConnectionLost(`the Sentinel at ${sentinel.host}:${sentinel.port} knows no ${sentinels?.name}`);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
