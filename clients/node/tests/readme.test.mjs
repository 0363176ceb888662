// The five minutes of the README, as they stand, with the package as npm packs it.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { eventually, Server } from './server.mjs';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const README = readFileSync(path.join(PACKAGE, 'README.md'), 'utf8');
const blocks = (language) =>
  [...README.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text]) => text);
let project;

before(() => {
  // What npm would install, without asking its registry for the clients again.
  project = mkdtempSync(path.join(tmpdir(), 'dq-node-'));
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], {
      cwd: PACKAGE,
      stdio: 'pipe',
    }),
  );
  const installed = path.join(project, 'node_modules', 'dq-client');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', path.join(project, filename), '--strip-components=1', '-C', installed]);
  for (const name of ['ioredis', '@types', 'undici-types']) {
    symlinkSync(path.join(PACKAGE, 'node_modules', name), path.join(project, 'node_modules', name));
  }
});

after(() => rmSync(project, { recursive: true }));

/** Writes a program of the page for a server and runs it. */
function start(t, name, text, address) {
  writeFileSync(path.join(project, name), text.replace('localhost:6379', address));
  const program = spawn('node', [name], { cwd: project, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => program.kill('SIGKILL'));
  return program;
}

test('the five minutes work', async (t) => {
  const server = await Server.start(t);
  const [worker, shop] = blocks('js');
  const running = start(t, 'worker.mjs', worker, `127.0.0.1:${server.port}`);
  const said = new Set();
  createInterface({ input: running.stdout }).on('line', (line) => said.add(line));
  const [code] = await once(start(t, 'shop.mjs', shop, `127.0.0.1:${server.port}`), 'exit');
  assert.equal(code, 0);
  await eventually('all are sent', () => said.size === 3);
  assert.deepEqual(
    [...said].sort(),
    ['ann', 'ben', 'cid'].map((name) => `mail to ${name}@example.org`),
  );
  running.kill('SIGINT');
  assert.deepEqual(await once(running, 'exit'), [0, null]);
  const info = await server.do('DQ.INFO', 'mail');
  assert.equal(info[info.indexOf('acked') + 1], 3);
});

test('the rights of the page are enough', async (t) => {
  const server = await Server.start(t);
  await server.do(...README.match(/^ACL SETUSER .*$/m)[0].split(' '));
  const running = start(t, 'worker.mjs', blocks('js')[0], `worker:secret@127.0.0.1:${server.port}`);
  let errors = '';
  running.stderr.on('data', (data) => {
    errors += data;
  });
  await server.do('DQ.PUSH', 'mail', '{"name": "welcome", "data": {"to": "nobody"}}', 'ID', 'm');
  await eventually('it is rejected', async () => (await server.message('mail', 'm')).state === 'dead');
  running.kill('SIGTERM');
  assert.deepEqual(await once(running, 'exit'), [0, null]);
  assert.equal(errors, 'mail: message "m" ("welcome") at attempt 1 failed and is now dead: no address\n');
});

test('a URL leads through node-redis if ioredis is not installed', async (t) => {
  const server = await Server.start(t);
  const modules = path.join(project, 'alone', 'node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(path.join(project, 'node_modules', 'dq-client'), path.join(modules, 'dq-client'), { recursive: true });
  symlinkSync(path.join(PACKAGE, 'node_modules', 'redis'), path.join(modules, 'redis'));
  rmSync(path.join(project, 'node_modules', 'ioredis'));
  t.after(() =>
    symlinkSync(path.join(PACKAGE, 'node_modules', 'ioredis'), path.join(project, 'node_modules', 'ioredis')),
  );
  const program = `
    import { Queue, Worker } from 'dq-client';
    for (const connection of ['${server.url}/1', { host: '127.0.0.1', port: ${server.port} }]) {
      const queue = new Queue('q', { connection });
      const worker = new Worker('q', (job) => job.data * 2, { connection });
      console.log(await queue.addAndWait('double', 4, { timeout: 5000 }));
      await worker.close();
      await queue.close();
    }`;
  writeFileSync(path.join(project, 'alone', 'program.mjs'), program);
  assert.equal(execFileSync('node', ['program.mjs'], { cwd: path.join(project, 'alone'), encoding: 'utf8' }), '8\n8\n');
});

test('a bundle says what is to be external', () => {
  const bundle = path.join(project, '..', `${path.basename(project)}-bundle`);
  cpSync(path.join(project, 'node_modules', 'dq-client', 'dist'), bundle, { recursive: true });
  rmSync(path.join(bundle, 'thread'), { recursive: true });
  const program = `
    const { Queue, Worker } = require('./index.js');
    const said = (act) => { try { act(); } catch (error) { console.log(error.message); } };
    said(() => new Queue('q', { connection: 'redis://localhost' }));
    said(() => new Worker('q', () => {}, { connection: { sendCommand() {}, options: {} } }));`;
  try {
    writeFileSync(path.join(bundle, 'program.cjs'), program);
    const said = execFileSync('node', ['program.cjs'], { cwd: bundle, encoding: 'utf8' }).split('\n');
    assert.match(said[0], /^install ioredis or redis; if it is, tell your bundler that dq-client is external$/);
    assert.match(said[1], /engine\.js is missing: tell your bundler that dq-client is external$/);
  } finally {
    rmSync(bundle, { recursive: true });
  }
});

test('the page and the package agree on the oldest Node', () => {
  const { engines } = JSON.parse(readFileSync(path.join(PACKAGE, 'package.json'), 'utf8'));
  assert.equal(engines.node, `>=${/for Node ([\d.]+) and newer/.exec(README)[1]}`);
});

test('the package is one for ES modules and CommonJS', () => {
  const both = `
    const { UnrecoverableError, Queue, Worker } = require('dq-client');
    import('dq-client').then((esm) => {
      console.log(esm.UnrecoverableError === UnrecoverableError, esm.Queue === Queue, esm.Worker === Worker);
    });`;
  writeFileSync(path.join(project, 'both.cjs'), both);
  assert.equal(execFileSync('node', ['both.cjs'], { cwd: project, encoding: 'utf8' }), 'true true true\n');
});

test('the package has types for both, and the page is right about them', () => {
  const text = `
    import { Queue, Worker, type Job } from 'dq-client';
    const queue = new Queue<{ to: string }, number>('mail', { connection: 'redis://localhost' });
    export const added: Promise<{ id: string }> = queue.add('welcome', { to: 'ann' }, { delay: 5, at: new Date() });
    new Worker<{ to: string }, number>('mail', async (job: Job<{ to: string }>, { signal }) => {
      return signal.aborted ? 0 : job.data.to.length;
    }, { connection: { host: 'localhost' } }).on('completed', (job, result) => result.toFixed() + job.data.to)
      // @ts-expect-error: there is no such event
      .on('complete', () => {});
    // @ts-expect-error: the name of the option is id
    queue.add('welcome', { to: 'ann' }, { jobId: 'x' });
  `;
  const [page] = blocks('ts');
  const files = { 'types.mts': text, 'types.cts': text, 'page.mts': page };
  for (const [file, program] of Object.entries(files)) writeFileSync(path.join(project, file), program);
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  execFileSync(path.join(PACKAGE, 'node_modules/.bin/tsc'), [...options, ...Object.keys(files)], {
    cwd: project,
    stdio: 'inherit',
  });
});
