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
export type Send = (words: Word[], sending?: Sending) => Promise<unknown>;

/** What is known of a command while it is sent. */
export interface Sending {
  /** Withdraws the command if it is not sent yet. */
  unsent?: AbortSignal;
  /** How often it was sent without an answer, by a client that counts that. */
  times: number;
}

/** One connection. */
export interface Link {
  /** Where the server is, for errors. */
  place: string;
  send: Send;
  /** Resolves once the server has confirmed the subscription. May be called again. */
  subscribe(channel: Buffer, heard: (notice: Buffer) => void): Promise<unknown>;
  /** Settles when the server answers. */
  ping(): Promise<unknown>;
  onClose(closed: () => void): void;
  close(): void;
}

// How long a server may take to accept a connection.
const CONNECT_MS = 2000;
// How long it may take to answer the first commands besides.
const GREETING_MS = 5000;

/** Opens a connection to a server, to an address of a cluster if one is given. An error names the address. */
export function open(target: Target, address?: Address): Promise<Link> {
  const place = placeOf(target, address);
  return translating(async () => {
    const link = await (target.library === 'ioredis' ? openIoRedis : openNodeRedis)(target, address);
    return { ...link, place };
  }, place);
}

/** Returns where a server is, for errors. */
export function placeOf(
  { options, seeds, sentinels }: Target,
  address = seeds?.[0] ?? sentinels?.addresses[0],
): string {
  const { url, socket, host, port, path } = options as Record<string, string | undefined>;
  const found = { host, port, path, ...(url ? addressOf(url) : {}), ...(socket as object | undefined), ...address };
  return found.path ?? `${found.host ?? 'localhost'}:${found.port ?? 6379}`;
}

/** Returns the address of a node that is given as a URL, as a port, or as an object. */
export function addressOf(node: unknown): Address {
  if (typeof node === 'number') return { host: '127.0.0.1', port: node };
  if (typeof node === 'string') {
    const url = new URL(node.includes('://') ? node : `redis://${node}`);
    return { host: url.hostname || '127.0.0.1', port: Number(url.port || 6379) };
  }
  const { host = '127.0.0.1', port = 6379 } = node as Partial<Address>;
  return { host, port: Number(port) };
}

/** Returns the error of this package for one of a client. It names the place of the server if that is given. */
function translated(error: unknown, place = ''): DqError {
  const { name = '', message = String(error), errors } = error as AggregateError;
  const kind = (error as Error).constructor?.name ?? '';
  const isReply = name === 'ReplyError' || /^(SimpleError|BlobError|ErrorReply)$/.test(kind);
  if (isReply) {
    const { command } = error as { command?: { name?: string; args?: unknown } };
    if (command) command.args = undefined; // ioredis keeps the payload there, and loggers show the cause of an error.
    return refused(message, error);
  }
  // A name with several addresses leads to an error for each, and none of its own.
  const found = message || errors?.map((each) => each.message).join(', ') || name;
  return new ConnectionLost(found.includes(place) ? found : `${found} (${place})`, { cause: error });
}

async function translating<T>(act: () => Promise<T>, place?: string): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) throw error; // A defect, and not the connection.
    throw translated(error, place);
  }
}

/** Returns how commands are sent with ioredis. */
export function sendWithIoRedis(redis: GivenIoRedis): Send {
  // Automatic pipelines of ioredis lose the names of commands that are sent with `callBuffer`.
  const options = { ...redis.options, enableAutoPipelining: false };
  const { callBuffer } = redis;
  return ([name, ...words], sending = { times: 0 }) => {
    const sendCommand = (command: IoRedis.Command) => sendCounted(redis, command, sending);
    // It flattens what it gets. As arguments of a call, very many words do not fit on the stack.
    return translating(
      () =>
        callBuffer.call({ options, sendCommand } as IoRedis.Redis, String(name), words as never) as Promise<unknown>,
    );
  };
}

type GivenIoRedis = Pick<IoRedis.Redis, 'callBuffer' | 'sendCommand' | 'options'> & { isCluster?: boolean };

/**
 * Sends a command and counts how often. A client of a cluster would send it again after a lost reply, so that null
 * might be the answer to one's own push: it follows redirections only.
 */
function sendCounted(redis: GivenIoRedis, command: IoRedis.Command, sending: Sending): Promise<unknown> {
  const { reject, toWritable } = command;
  command.toWritable = (socket) => {
    sending.times += 1;
    return toWritable.call(command, socket);
  };
  const sent = redis.sendCommand(command) as Promise<unknown>;
  const followOrReject = command.reject;
  command.reject = (error) => {
    if (error.name === 'ReplyError') sending.times = 0;
    const isLost = redis.isCluster && sending.times > 0;
    (isLost ? reject : followOrReject).call(command, error);
  };
  return sent;
}

/** Returns how commands are sent with node-redis. A client of a cluster wants the key besides. */
export function sendWithNodeRedis(
  client: { sendCommand: (...given: never[]) => Promise<unknown> },
  isCluster: boolean,
): Send {
  // Bulk strings (RESP type $) arrive as bytes.
  const typeMapping = { 36: Buffer };
  const send = client.sendCommand.bind(client) as (...given: unknown[]) => Promise<unknown>;
  return (words, { unsent: abortSignal } = { times: 0 }) => {
    const options = { typeMapping, ...(abortSignal && { abortSignal }) };
    return translating(() => (isCluster ? send(words[1], false, words, options) : send(words, options)));
  };
}

async function openIoRedis(target: Target, address?: Address): Promise<Omit<Link, 'place'>> {
  const { Redis } = await import('ioredis');
  const redis = new Redis({
    connectTimeout: CONNECT_MS,
    disconnectTimeout: 200, // A connection that was refused keeps the process alive for so long.
    ...target.options,
    ...address,
    // A master that Sentinels have replaced may live on for seconds, and what it accepts then is lost.
    ...(target.options.sentinels ? { failoverDetector: true } : {}),
    db: 0, // It would go on in database 0 if it had no right to another one.
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
  redis.once('end', () => redis.disconnect()); // Which ends its connections to Sentinels.
  try {
    const act = async () => {
      await redis.connect();
      // Version 5 is ready before it knows whether the server has accepted the password.
      if (target.options.password) await redis.ping().catch(() => {});
      if (lastError) throw lastError;
      if (target.db > 0) await redis.select(target.db);
    };
    await greeted(act(), () => redis.disconnect());
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

async function openNodeRedis(target: Target, address?: Address): Promise<Omit<Link, 'place'>> {
  const found = target.sentinels ? await masterOf(target) : address;
  const client = await connectNodeRedis(target, found);
  const close = () => (client.isOpen ? client.destroy() : undefined);
  const unwatch = target.sentinels ? watchSentinels(target, close) : () => {};
  client.once('dq-closed' as never, unwatch);
  return {
    send: sendWithNodeRedis(client, false),
    // It finds listeners by text. A queue whose name is not UTF-8 learns of losses at half time.
    subscribe: (channel, heard) => translating(() => client.subscribe(channel.toString(), heard, true)),
    ping: () => client.ping(),
    onClose: (closed) => client.once('dq-closed' as never, closed),
    close: () => {
      unwatch();
      close();
    },
  };
}

/** Has a connection closed when Sentinels name another master: see `openIoRedis`. Returns a function that ends that. */
function watchSentinels({ sentinels, ...target }: Target, switched: () => void): () => void {
  const watching: NodeRedis.RedisClientType[] = [];
  let isEnded = false;
  const watch = async (sentinel: Address) => {
    const client = await connectNodeRedis(target, sentinel, OF_SENTINELS);
    watching.push(client);
    if (isEnded) client.destroy();
    else
      await client.subscribe('+switch-master', (text) =>
        text.startsWith(`${sentinels?.name} `) ? switched() : undefined,
      );
  };
  for (const sentinel of sentinels?.addresses ?? []) watch(sentinel).catch(() => {});
  return () => {
    isEnded = true;
    for (const client of watching.splice(0)) if (client.isOpen) client.destroy();
  };
}

async function connectNodeRedis(target: Target, address?: Address, more: object = {}) {
  const { createClient } = await import('redis');
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

// Sentinels have neither the databases nor the users of a server.
const OF_SENTINELS = { database: 0, username: undefined, password: undefined };

async function masterOf({ sentinels, ...target }: Target): Promise<Address> {
  let failure: unknown = new ConnectionLost('no Sentinel was given');
  for (const sentinel of sentinels?.addresses ?? []) {
    try {
      const client = await connectNodeRedis(target, sentinel, OF_SENTINELS);
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
