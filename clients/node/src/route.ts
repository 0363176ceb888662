/**
 * The way to the server that holds a queue: one address, the master that Sentinels name, or the right node of a
 * cluster.
 */
import { type Address, type Link, open, type Target } from './drivers.js';
import { ConnectionLost } from './errors.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;
/** The longest time for which Node can set a timer. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Returns the milliseconds of a clock that all threads of the process share, and that nobody sets. */
export function monotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Opens connections to the server of one queue, and follows it through a cluster. */
export class Route {
  readonly target: Target;
  #address: Address | undefined;
  #seed = 0;

  constructor(target: Target) {
    this.target = target;
  }

  /** Opens a connection. */
  open(): Promise<Link> {
    const { seeds } = this.target;
    if (seeds) this.#address ??= seeds[this.#seed++ % seeds.length];
    return open(this.target, this.#address);
  }

  /** Learns from an error where the queue is. Returns whether it is worth trying again at once. */
  learn(error: unknown): boolean {
    const moved = /^MOVED \d+ (.*):(\d+)$/.exec((error as Error).message);
    if (moved) {
      this.#address = { host: moved[1] || (this.#address?.host ?? ''), port: Number(moved[2]) };
      return true;
    }
    this.#address = undefined;
    return false;
  }
}

/** Growing, jittered pauses between attempts to reach a server. */
export class Backoff {
  #pause = FIRST_PAUSE_MS;

  /** Returns the next pause, in milliseconds. */
  next(): number {
    const pause = this.#pause;
    this.#pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    return pause * (0.5 + Math.random() / 2);
  }

  /** Starts again with the shortest pause, after an answer. */
  reset(): void {
    this.#pause = FIRST_PAUSE_MS;
  }
}

/** Waits for an answer, and closes the connection if none comes in time. */
export function answered<T>(link: Link, answer: Promise<T>, ms: number): Promise<T> {
  return inTime(answer, ms, () => link.close(), `the server at ${link.place} did not answer`);
}

/** Waits for an answer, and rejects with `ConnectionLost` if none comes in time. `what` describes that failure. */
export function inTime<T>(answer: Promise<T>, ms: number, late: () => void, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => {
        late();
        reject(new ConnectionLost(`${what} within ${Math.round(ms)} ms`));
      },
      Math.min(ms, LONGEST_TIMER_MS),
    );
    const ended =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        clearTimeout(timer);
        settle(value);
      };
    answer.then(ended(resolve), ended(reject));
  });
}
