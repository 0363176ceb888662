// Servers with the module, each on a port and in a directory of its own. DQ_SERVER and DQ_MODULE name others.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

const ROOT = path.resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../..');
const PATIENCE = Number(process.env.DQ_PATIENCE ?? 1);
const printed = (...words) => execFileSync(words[0], words.slice(1), { cwd: ROOT, encoding: 'utf8' }).trim();
const binary = process.env.DQ_SERVER ?? printed('scripts/find-server.sh');
const module = process.env.DQ_MODULE ?? printed('scripts/find-module.sh', 'debug');

/** Waits for a condition and returns its value. */
export async function eventually(what, condition, ms = 10_000) {
  const end = Date.now() + ms * PATIENCE;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(10);
  }
}

/** Returns a port that nobody listens on, and that leaves room for the bus of a cluster. */
export async function freePort() {
  for (;;) {
    const listener = createServer().listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const { port } = listener.address();
    listener.close();
    if (port < 50_000) return port;
  }
}

/** Runs a server until the test ends. Returns a function that kills it. */
export async function run(t, words, directory) {
  const process = spawn(binary, words.map(String), { stdio: 'ignore' });
  const exited = once(process, 'exit');
  const kill9 = () => {
    process.kill('SIGKILL');
    return exited;
  };
  t.after(async () => {
    await kill9();
    rmSync(directory, { recursive: true, force: true });
  });
  return kill9;
}

/** A server that runs until the test ends. */
export class Server {
  /** Starts one with more arguments. */
  static async start(t, ...given) {
    const server = new Server();
    server.port = await freePort();
    server.directory = mkdtempSync(path.join(tmpdir(), 'dq-node-'));
    server.socket = path.join(server.directory, 'socket');
    const own = ['--port', server.port, '--bind', '127.0.0.1', '--dir', server.directory, '--save', ''];
    const rest = ['--unixsocket', server.socket, '--loadmodule', module];
    server.kill9 = await run(t, [...own, ...rest, ...given], server.directory);
    server.admin = new Redis({ port: server.port, retryStrategy: () => 20, maxRetriesPerRequest: null });
    server.admin.on('error', () => {});
    t.after(() => server.admin.disconnect());
    await eventually('the server answers', () => server.admin.ping().catch(() => false));
    return server;
  }

  /** Where it is. */
  get url() {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Sends a command. */
  do(command, ...words) {
    return this.admin.call(command, ...words);
  }

  /** The fields of a message. */
  async message(queue, id) {
    const fields = (await this.do('DQ.GET', queue, id)) ?? [];
    return Object.fromEntries(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1]]] : [])));
  }
}
