/**
 * The clock of a server, against which a worker counts leases: the server says when each one ends, by its own clock.
 * Nothing that the worker measures by itself is as exact. The answer to a pop may be late, and the message may have a
 * lease of its own, which the answer does not name.
 */
import { text } from '../bytes.js';
import type { Link } from '../drivers.js';
import { Refused } from '../errors.js';
import { isTransient } from '../refusals.js';
import { answered } from '../route.js';

/** By how much the clocks of two machines may differ after a time, as a part of it. */
export const DRIFT = 0.001;
/** By how much more, since deadlines are whole milliseconds. */
export const ROUNDING_MS = 2;

// For how long what is known counts.
const FRESH_MS = 5000;
const JUST_MS = 200;

/**
 * Returns whether a deadline, which has moved by more or less than the time that has passed, shows that a clock or a
 * lease was set.
 */
export function hasJumped(grown: number, passed: number): boolean {
  return grown === 0 || Math.abs(grown - passed) > 500 + 0.1 * passed;
}

/** By how much the clock of the server is ahead of ours, never less than it is: a lease then ends too early for us. */
export class ServerTime {
  #ahead: number | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Asks the server for its time if it was not asked lately. Somebody may have set its clock. */
  async refresh(link: Link, ms: number): Promise<void> {
    if (performance.now() - this.#readAt > FRESH_MS) await this.read(link, ms);
  }

  /** Asks the server for its time. Without the right to that, leases are counted from the commands that begin them. */
  async read(link: Link, ms: number): Promise<void> {
    const sent = performance.now();
    this.#readAt = sent;
    try {
      const [seconds, microseconds] = (await answered(link, link.send(['TIME']), ms)) as [unknown, unknown];
      const ahead = Number(text(seconds)) * 1000 + Number(text(microseconds)) / 1000 - sent;
      const known = this.#ahead;
      const took = performance.now() - sent;
      // Otherwise the answer was late, and what is known is as good.
      if (known === undefined || ahead < known || ahead > known + took) this.#ahead = ahead;
    } catch (error) {
      if (!(error instanceof Refused) || isTransient(error)) throw error;
      this.#ahead = undefined;
    }
  }

  /** Whether the server has told its time. */
  get isKnown(): boolean {
    return this.#ahead !== undefined;
  }

  /** Somebody may have set the clock of the server: the next refresh asks for its time, if that was not just done. */
  expire(): boolean {
    const isOld = performance.now() - this.#readAt > JUST_MS;
    if (isOld) this.#readAt = Number.NEGATIVE_INFINITY;
    return isOld;
  }

  /** Returns how many milliseconds are left until a deadline of the server, if that is known. */
  left(deadline: number | undefined, now: number): number | undefined {
    if (this.#ahead === undefined || deadline === undefined) return undefined;
    const left = deadline - (now + this.#ahead);
    return left - Math.abs(left) * DRIFT - ROUNDING_MS;
  }
}
