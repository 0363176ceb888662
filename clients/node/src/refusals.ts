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
const TRANSIENT = /^(LOADING|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED|MOVED|ASK|BUSY)\b/;

/** Returns the error for the text of an error reply. */
export function refused(message: string, cause?: unknown): Refused {
  if (/^ERR unknown command ['`]?dq\./i.test(message))
    return new Refused('the server has not loaded the module dq', { cause });
  const [code = ''] = message.split(' ', 1);
  return new (CLASSES[code] ?? Refused)(message, { cause });
}

/** Returns whether the same command may succeed later. */
export function isTransient(error: unknown): boolean {
  return error instanceof ConnectionLost || (error instanceof Refused && TRANSIENT.test(error.message));
}
