/** Errors: what the server refuses, and what a handler throws to decide what becomes of its message. */

import { shown } from './bytes.js';
import { check } from './options.js';

/** The base of the errors that commands of this package reject with. */
export class DqError extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The connection broke or the server did not answer. A command that was sent may have been carried out. */
export class ConnectionLost extends DqError {
  /** Whether the command may have been carried out. False if no connection could be opened. */
  mayHaveRun = true;
}

/** The server answered with an error. */
export class Refused extends DqError {
  /** The first word of the error, such as `ERR` or `WRONGTYPE`. */
  readonly code: string;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR';
  }
}

/** The queue has no room under its `MAXLEN`. */
export class QueueFull extends Refused {}

/** The queue holds a dead message of this id. Replace, redrive or cancel it first. */
export class DeadId extends Refused {}

/** The payload is larger than the `MAXPAYLOAD` of the queue. */
export class TooLarge extends Refused {}

/** The queue accepts no messages at present. */
export class QueueClosed extends Refused {}

/** The server has reached its `maxmemory`. */
export class OutOfMemory extends Refused {}

/** The message that a caller waited for is dead. The text is its last error. */
export class JobFailed extends DqError {}

/**
 * The message that a caller waited for is gone: cancelled, purged, or completed without being kept. Or its result is
 * not kept.
 */
export class NotKept extends DqError {}

/** The message that a caller waited for was not completed in time. */
export class WaitTimeout extends DqError {}

/** A handler took longer than the `timeLimit` of its worker. */
export class TimeLimitExceeded extends DqError {}

/** The reason with which the signal of a handler is aborted. `reason` is why its message was taken from it. */
export class MessageLost extends DqError {
  readonly reason: LossReason;

  constructor(reason: LossReason) {
    super(`the message is no longer this handler's: ${reason}`);
    this.reason = reason;
  }
}

/** Why a message was taken from its handler. */
export type LossReason =
  | 'lease'
  | 'cancelled'
  | 'replaced'
  | 'buried'
  | 'purged'
  | 'released'
  | 'stopping'
  | 'time limit';

/** A handler throws this if its message can never succeed. The message becomes dead at once. */
export class UnrecoverableError extends Error {
  override name = 'UnrecoverableError';
}

// The longest time that the server takes.
const LONGEST_MS = 2 ** 42 - 1;

/** Returns whether a message can be delivered again after such a time. */
export function isDelay(after: unknown): after is number {
  return typeof after === 'number' && after >= 0 && after <= LONGEST_MS;
}

/** A handler throws this to have its message delivered again. The attempt counts. */
export class RetryError extends Error {
  override name = 'RetryError';
  /** After how many milliseconds; the backoff of the queue if it is not given. */
  readonly after: number | undefined;

  constructor(options: { after?: number; message?: string; cause?: unknown } = {}) {
    check(options, ['after', 'message', 'cause']);
    const { after, message = '', cause } = options;
    if (after !== undefined && !isDelay(after)) {
      throw new TypeError(`after must be a number of 0 to ${LONGEST_MS} milliseconds, but is ${shown(after)}`, {
        cause,
      });
    }
    super(message, { cause });
    this.after = after;
  }
}
