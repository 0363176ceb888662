/**
 * The thread that speaks with the server for all workers of a process: it pops, extends leases, learns of losses,
 * watches the time and reports outcomes. No handler runs here, so no handler can stall it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { Link } from '../drivers.js';
import type { Notice, Order } from '../messages.js';
import { GIVEN_BACK } from '../outcome.js';
import { answered, inTime } from '../route.js';
import { Lane, MARGIN_MS } from './lane.js';
import { Listener } from './listener.js';
import { Popper } from './popper.js';
import { Reporter } from './reporter.js';

// How long the end of a worker waits for handlers that were asked to stop, and for answers to the last outcomes.
const LAST_MS = 1000;
const STEP_MS = 20;
// How long a server may take to unblock a pop. It puts that off while writes are paused.
const UNBLOCK_MS = 500;

class Running {
  readonly lane: Lane;
  readonly #popper: Popper;
  readonly #reporter: Reporter;
  readonly #listener: Listener;
  readonly #popping: Promise<void>;
  #isPopping = true;
  #isReady = false;

  constructor(lane: Lane) {
    this.lane = lane;
    const ready = () => this.#notifyIfReady();
    this.#popper = new Popper(lane, ready);
    this.#reporter = new Reporter(lane);
    this.#listener = new Listener(lane, ready);
    this.#popping = this.#popper.run().finally(() => {
      this.#isPopping = false;
    });
    void this.#reporter.run();
    void this.#listener.run();
  }

  /** Takes no further messages, waits for handlers, gives back what is left, and ends. */
  async stop(grace: number): Promise<void> {
    const { lane } = this;
    const end = performance.now() + grace;
    lane.stop();
    await this.#endPop();
    lane.collecting = false;
    lane.toReport.ring();
    await until(() => lane.places.size === 0, end);
    for (const delivery of [...lane.held.values()]) lane.lose(delivery, 'stopping', GIVEN_BACK);
    await until(() => lane.places.size === 0, performance.now() + LAST_MS);
    // A server that is slow still gets what is on its way.
    const last = performance.now();
    await until(() => lane.allAnswered || this.#reporter.failedAt > last, last + MARGIN_MS);
    lane.close();
    this.#listener.close();
    this.#reporter.drop();
    this.#popper.drop();
    lane.notify({ kind: 'closed', lane: lane.config.lane, ...lane.ending });
  }

  /**
   * Unblocks the pop. A message that is delivered to it meanwhile is received and given back. If it cannot be
   * unblocked, its connection is closed; a message that was on its way is then delivered again after its lease.
   */
  async #endPop(): Promise<void> {
    const { lane } = this;
    const opened = lane.route.open();
    try {
      const link = await inTime(opened, LAST_MS, () => {}, 'no connection');
      // A connection on which nothing arrives may be dead, although another one is served.
      const end = performance.now() + UNBLOCK_MS;
      const isInTime = () => this.#isPopping && performance.now() < end;
      for (let id = this.#popper.connectionId; id && isInTime(); id = this.#popper.connectionId) {
        await answered(link, unblock(link, lane.key, id), UNBLOCK_MS);
        await Promise.race([this.#popping, sleep(STEP_MS)]);
      }
    } catch {
    } finally {
      this.#popper.drop();
      opened.then((link) => link.close()).catch(() => {});
    }
  }

  #notifyIfReady(): void {
    if (this.#isReady || !this.#popper.consuming || !this.#listener.tried) return;
    this.#isReady = true;
    this.lane.notify({ kind: 'ready', lane: this.lane.config.lane });
  }
}

/**
 * Unblocks a connection. Some servers end if they unblock a client whose command they have put off, because writes are
 * paused. The ack, of what no id can be, is a write, so the whole transaction is put off then.
 */
async function unblock(link: Link, key: Buffer, id: string): Promise<void> {
  await link.send(['MULTI']); // Without the right to it the others would be carried out one by one.
  const rest = [['DQ.ACK', key, '#'], ['CLIENT', 'UNBLOCK', id], ['EXEC']];
  await Promise.all(rest.map((words) => link.send(words)));
}

async function until(done: () => boolean, end: number): Promise<void> {
  while (!done() && performance.now() < end) await sleep(Math.min(STEP_MS, Math.max(1, end - performance.now())));
}

// If it is not installed, the first connection fails with that error.
import(workerData).catch(() => {});

const lanes = new Map<number, Running>();

parentPort?.on('message', (order: Order) => {
  if (order.kind === 'add') lanes.set(order.config.lane, new Running(new Lane(order.config, order.port)));
  else if (order.kind === 'attach') lanes.get(order.lane)?.lane.attach(order.port, order.error);
  else {
    const running = lanes.get(order.lane);
    lanes.delete(order.lane);
    if (running) void running.stop(order.grace);
    else parentPort?.postMessage({ kind: 'closed', lane: order.lane, givenBack: 0, unanswered: 0 } satisfies Notice);
  }
});
