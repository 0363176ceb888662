/** What error replies mean: their class, and whether the same command may succeed later. */
import { ConnectionLost, DeadId, OutOfMemory, QueueClosed, QueueFull, Refused, TooLarge } from './errors.js';

const CLASSES: Record<string, new (message: string, options?: ErrorOptions) => Refused> = {
  QUEUEFULL: QueueFull,
  DEADID: DeadId,
  TOOLARGE: TooLarge,
  QUEUECLOSED: QueueClosed,
  OOM: OutOfMemory,
};

// The server, or the one that takes over, may carry out the same command later.
const NOT_NOW = /^(LOADING|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED|BUSY)\b/;
// As the others, for a worker: another server has the queue, or the password is about to change.
const ELSEWHERE = /^(MOVED|ASK|NOAUTH|WRONGPASS)\b/;

/** Returns the error for the text of an error reply. */
export function refused(message: string, cause?: unknown): Refused | ConnectionLost {
  if (/^ERR max number of clients\b/.test(message)) {
    return Object.assign(new ConnectionLost(message, { cause }), { mayHaveRun: false });
  }
  if (/^ERR unknown command ['`]?dq\./i.test(message)) {
    return new Refused('the server has not loaded the module dq'); // The answer, which quotes the payload, is left out.
  }
  const [code = ''] = message.split(' ', 1);
  return new (CLASSES[code] ?? Refused)(message, { cause });
}

/** Returns whether the server has not carried out a command, and may do so later. */
export function isNotNow(error: unknown): boolean {
  return error instanceof Refused && NOT_NOW.test(error.message);
}

/** Returns whether the same command may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ConnectionLost || isNotNow(error)) return true;
  return error instanceof Refused && ELSEWHERE.test(error.message);
}
