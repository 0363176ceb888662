/**
 * The loop that receives notices when commands take messages away: the server publishes them on a channel of each
 * queue. They are hints. If the connection breaks, or the user has no right to the channel, losses are noticed when
 * leases are extended.
 */
import type { Link } from '../drivers.js';
import { Refused } from '../errors.js';
import { answered, Backoff } from '../route.js';
import { Bell } from './bell.js';
import { type Lane, MARGIN_MS } from './lane.js';

// After so long the server is asked whether it is there.
const QUIET_MS = 10_000;

/** Subscribes to the channel of a lane. */
export class Listener {
  /** Whether it has tried to subscribe. */
  tried = false;
  readonly #lane: Lane;
  readonly #onTried: () => void;
  readonly #closed = new Bell();
  #link: Link | undefined;

  constructor(lane: Lane, onTried: () => void) {
    this.#lane = lane;
    this.#onTried = onTried;
  }

  /** Listens until the lane is closed, or the channel is refused. */
  async run(): Promise<void> {
    const lane = this.#lane;
    const backoff = new Backoff();
    while (!lane.closed) {
      try {
        this.#link = await lane.route.open();
        await this.#listen(this.#link, () => backoff.reset());
      } catch (error) {
        this.close();
        const moved = lane.route.learn(error);
        if (error instanceof Refused && error.code === 'NOPERM') {
          lane.complain(error, 'losses are noticed at half time of a lease only, without the right to the channel: ');
          this.#hasTried();
          return;
        }
        if (!moved) await lane.pause(backoff.next(), 'closed');
      }
    }
    this.close();
  }

  /** Closes the connection. */
  close(): void {
    this.#link?.close();
    this.#link = undefined;
    this.#closed.ring();
  }

  async #listen(link: Link, onSubscribed: () => void): Promise<void> {
    const lane = this.#lane;
    const channel = Buffer.concat([Buffer.from(`__dq@${lane.config.target.db}__:`), lane.key]);
    let isOpen = true;
    link.onClose(() => {
      isOpen = false;
      this.#closed.ring();
    });
    const subscribed = link.subscribe(channel, (notice) => lane.noticed(notice));
    await answered(link, subscribed, MARGIN_MS);
    onSubscribed();
    this.#hasTried();
    lane.extend(); // Something may have been missed.
    while (isOpen && !lane.closed) {
      await this.#closed.wait(QUIET_MS);
      const pong = isOpen && !lane.closed && link.ping().catch(() => {});
      if (pong) await answered(link, pong, MARGIN_MS);
    }
  }

  #hasTried(): void {
    this.tried = true;
    this.#onTried();
  }
}
