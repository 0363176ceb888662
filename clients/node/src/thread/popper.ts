/**
 * The loop that pops: never more messages than there are free places, and with the outcomes of those that have ended.
 * While it waits for a message, outcomes go through the reporter.
 */
import { entries, type Word } from '../bytes.js';
import type { Link } from '../drivers.js';
import { ConnectionLost, Refused } from '../errors.js';
import { answered, Backoff } from '../route.js';
import { type Lane, MARGIN_MS } from './lane.js';
import { settle } from './settle.js';

// How often the settings of a queue are read again.
const LEARN_MS = 5000;
// After a pop whose answer was lost, how long it takes until twice as many messages are asked for again. The answer may
// have been larger than the server, or what is between, lets pass, and what is lost with it waits for the end of its
// lease.
const CAREFUL_MS = 60_000;

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
  /** How many messages a pop asks for at most, and how many the one asks for whose answer has not come. */
  #most: number;
  #asked = 0;
  #carefulUntil = 0;

  constructor(lane: Lane, onConsuming: () => void) {
    this.#lane = lane;
    this.#most = lane.config.concurrency;
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
        lane.popsAre(false);
        lane.heard();
      } catch (error) {
        this.drop();
        lane.popsAre(true);
        this.#beCareful(error);
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
      const begun = this.#begun();
      const messages = await settle(lane, link, reports, room > 0 ? this.#popWords(room) : undefined);
      this.#asked = 0;
      lane.received(messages, begun);
      return;
    }
    lane.collecting = false;
    const begun = this.#begun();
    const wait = lane.blockMs;
    const popped = link.send(['DQ.POP', lane.key, ...this.#popWords(lane.room), 'BLOCK', String(wait)]);
    if (!this.consuming) {
      this.consuming = true;
      this.#onConsuming();
    }
    const messages = await answered(link, popped, wait + MARGIN_MS);
    this.#asked = 0;
    lane.received(messages, begun);
  }

  /** Returns from when the leases of a pop count that is sent now, if the server does not tell its time. */
  #begun(): number | undefined {
    return this.#lane.serverTime.isKnown ? undefined : performance.now();
  }

  /** Returns the words of a pop, which asks for fewer messages if the answer to an earlier one was lost. */
  #popWords(room: number): Word[] {
    const { concurrency } = this.#lane.config;
    if (this.#most < concurrency && performance.now() > this.#carefulUntil) {
      this.#most = Math.min(this.#most * 2, concurrency);
      this.#carefulUntil = performance.now() + CAREFUL_MS;
    }
    this.#asked = Math.min(room, this.#most);
    return this.#lane.popWords(this.#asked);
  }

  #beCareful(error: unknown): void {
    if (this.#asked > 1 && error instanceof ConnectionLost) {
      this.#most = Math.floor(this.#asked / 2);
      this.#carefulUntil = performance.now() + CAREFUL_MS;
    }
    this.#asked = 0;
  }

  async #learn(link: Link): Promise<void> {
    await this.#lane.serverTime.read(link, MARGIN_MS);
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

/**
 * Returns the id of a connection, if the server does. Every user may send HELLO, but not every server or proxy has it.
 */
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
