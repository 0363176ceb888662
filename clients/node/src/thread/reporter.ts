/**
 * The loop that extends leases at half time, all of a queue with one command, and reports outcomes until they are
 * answered.
 */
import type { Word } from '../bytes.js';
import type { Link } from '../drivers.js';
import { unpacked } from '../job.js';
import { isTransient } from '../refusals.js';
import { answered, Backoff } from '../route.js';
import { type Delivery, type Lane, MARGIN_MS } from './lane.js';
import { settle } from './settle.js';

/** Reports the outcomes of a lane and keeps its leases until it is closed and nothing is left. */
export class Reporter {
  /** When a command failed last, by `performance.now()`. */
  failedAt = 0;
  readonly #lane: Lane;
  readonly #backoff = new Backoff();
  #opened: Promise<Link> | undefined;

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  /** Works until the lane is closed and everything is sent. */
  async run(): Promise<void> {
    const lane = this.#lane;
    await this.link().catch(() => this.drop()); // The first extension is not to wait for a connection.
    while (!lane.closed) {
      const isBusy = (lane.reports.length > 0 && !lane.collecting) || lane.saves.length > 0 || lane.extendNow;
      if (!isBusy) {
        if (lane.recovering && lane.reports.length === 0) {
          lane.recovering = false;
          lane.toPop.ring();
        }
        await lane.toReport.wait();
        continue;
      }
      try {
        const link = await this.link();
        if (lane.extendNow || lane.saves.length > 0) await lane.serverTime.refresh(link, MARGIN_MS);
        if (lane.extendNow) await this.#extend(link);
        if (lane.saves.length > 0) await this.#save(link);
        if (!lane.collecting) await settle(lane, link, lane.takeReports());
        this.#backoff.reset();
        lane.heard();
      } catch (error) {
        this.drop();
        this.failedAt = performance.now();
        lane.recovering = true;
        if (!isTransient(error)) lane.complain(error);
        if (!lane.route.learn(error)) await lane.pause(this.#backoff.next(), 'closed');
      }
    }
    this.drop();
  }

  /** Returns the connection. */
  link(): Promise<Link> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async #open(): Promise<Link> {
    const link = await this.#lane.route.open();
    try {
      await this.#lane.serverTime.read(link, MARGIN_MS);
      return link;
    } catch (error) {
      link.close();
      throw error;
    }
  }

  /** Closes the connection. */
  drop(): void {
    this.#opened?.then((link) => link.close()).catch(() => {});
    this.#opened = undefined;
  }

  async #extend(link: Link): Promise<void> {
    const lane = this.#lane;
    const kept: Delivery[] = [...lane.held.values()];
    if (kept.length > 0) {
      const receipts = kept.map(({ delivered }) => unpacked(delivered.receipt));
      const words: Word[] = ['DQ.MEXTEND', lane.key, String(kept.length), ...receipts, ...lane.leaseWords];
      const sent = performance.now();
      const deadlines = (await answered(link, link.send(words), MARGIN_MS)) as unknown[];
      for (const [at, delivery] of kept.entries()) lane.extended(delivery, deadlines[at], sent);
    }
    lane.extendNow = false;
  }

  async #save(link: Link): Promise<void> {
    const lane = this.#lane;
    const { saves } = lane;
    lane.saves = [];
    for (const save of saves) {
      const { delivery: saving, checkpoint } = save;
      const { delivered } = saving;
      const words = [...lane.leaseWords, 'CHECKPOINT', unpacked(checkpoint)];
      const sent = performance.now();
      try {
        const extend = ['DQ.EXTEND', lane.key, unpacked(delivered.receipt), ...words];
        const deadline = await answered(link, link.send(extend), MARGIN_MS);
        if (saving.unsaved === save) saving.unsaved = undefined;
        const delivery = lane.held.get(delivered.receipt);
        if (delivery) lane.extended(delivery, deadline, sent);
      } catch (error) {
        if (!isTransient(error)) {
          if (saving.unsaved === save) saving.unsaved = undefined;
          lane.complain(error, 'a checkpoint was refused: ', delivered);
          continue;
        }
        // A failure that was accepted has taken the others along.
        const open = saves
          .slice(saves.indexOf(save))
          .filter(({ delivery }) => lane.places.has(delivery.delivered.token));
        lane.saves = [...open, ...lane.saves];
        throw error;
      }
    }
  }
}
