/**
 * The loop that pops: never more messages than there are free places, and with the outcomes of those that have ended. While
 * it waits for a message, outcomes go through the reporter.
 */
import { entries } from '../bytes.js';
import type { Link } from '../drivers.js';
import { Refused } from '../errors.js';
import { answered, Backoff } from '../route.js';
import { BLOCK_MS, type Lane, MARGIN_MS } from './lane.js';
import { settle } from './settle.js';

// How often the settings of a queue are read again.
const LEARN_MS = 5000;

/** Pops the messages of a lane until it stops. */
export class Popper {
  /** The connection that may be blocked in a pop. */
  connectionId: string | undefined;
  /** Whether it has popped. */
  consuming = false;
  readonly #lane: Lane;
  readonly #onConsuming: () => void;
  readonly #backoff = new Backoff();
  #link: Link | undefined;
  #learned = Number.NEGATIVE_INFINITY;
  #interrupted = false;

  constructor(lane: Lane, onConsuming: () => void) {
    this.#lane = lane;
    this.#onConsuming = onConsuming;
  }

  /** Pops until the lane stops. */
  async run(): Promise<void> {
    const lane = this.#lane;
    while (!lane.stopping) {
      try {
        await this.#step(this.#link ?? (await this.#connect()));
        this.#backoff.reset();
        this.#interrupted = false;
        lane.heard();
      } catch (error) {
        this.drop();
        this.#passReports();
        lane.recovering = true;
        if (!lane.stopping) await this.#pause(error);
      }
    }
    this.#passReports();
    this.drop();
  }

  /** Closes the connection. */
  drop(): void {
    this.connectionId = undefined;
    this.#link?.close();
    this.#link = undefined;
  }

  async #connect(): Promise<Link> {
    this.#link = await this.#lane.route.open();
    this.#learned = Number.NEGATIVE_INFINITY;
    this.connectionId = await idOf(this.#link);
    return this.#link;
  }

  async #step(link: Link): Promise<void> {
    const lane = this.#lane;
    if (performance.now() - this.#learned > LEARN_MS) await this.#learn(link);
    // What was not answered is repeated first, so that a message that is done is not delivered again.
    while (lane.recovering && !lane.stopping) {
      lane.collecting = false; // The reporter repeats it, and nothing waits for the next pop meanwhile.
      lane.toReport.ring();
      await lane.toPop.wait(MARGIN_MS);
    }
    lane.collecting = true;
    while (lane.reports.length === 0 && lane.room <= 0 && !lane.stopping) await lane.toPop.wait();
    if (lane.stopping) return;
    const reports = lane.takeReports();
    if (reports.length > 0) {
      const room = lane.room + reports.filter(({ delivery }) => delivery.ended).length;
      const sent = performance.now();
      const messages = await settle(lane, link, reports, room > 0 ? lane.popWords(room) : undefined);
      lane.received(messages, sent);
      return;
    }
    lane.collecting = false;
    const popped = link.send(['DQ.POP', lane.key, ...lane.popWords(lane.room), 'BLOCK', String(BLOCK_MS)]);
    if (!this.consuming) {
      this.consuming = true;
      this.#onConsuming();
    }
    lane.received(await answered(link, popped, BLOCK_MS + MARGIN_MS), performance.now());
  }

  async #learn(link: Link): Promise<void> {
    try {
      this.#lane.learn(await answered(link, link.send(['DQ.INFO', this.#lane.key]), MARGIN_MS));
    } catch (error) {
      if (!(error instanceof Refused && error.code === 'NOPERM')) throw error;
    }
    this.#learned = performance.now();
  }

  #passReports(): void {
    this.#lane.collecting = false;
    this.#lane.toReport.ring();
  }

  async #pause(error: unknown): Promise<void> {
    if (this.#lane.route.learn(error)) return;
    if (!this.#interrupted) this.#lane.complain(error);
    this.#interrupted = true;
    await this.#lane.pause(this.#backoff.next(), 'stopped');
  }
}

/** Returns the id of a connection, if the server does. Every user may send HELLO, but not every server or proxy has it. */
async function idOf(link: Link): Promise<string | undefined> {
  for (const words of [['HELLO'], ['CLIENT', 'ID']]) {
    try {
      const reply = await answered(link, link.send(words), MARGIN_MS);
      return String(typeof reply === 'number' ? reply : entries(reply).find(([name]) => name === 'id')?.[1]);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }
  return undefined; // The connection is closed at the stop.
}
