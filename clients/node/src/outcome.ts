/** What the end of a handler means to the server: an ack, a completion, or a nack. */
import { type Bytes, encode } from './bytes.js';
import { DqError, isDelay, RetryError, UnrecoverableError } from './errors.js';
import { type Job, jsonOf, packed } from './job.js';

// The server keeps this much of an error, and this much of a result.
const ERROR_BYTES = 1024;
const SUMMARY_BYTES = 512;
const RESULT_BYTES = 65_536;
// How many causes of an error are named.
const MOST_CAUSES = 5;

/** A command, and what follows the receipt in it. */
export type Outcome = [command: string, ...words: string[]];

export const ACK: Outcome = ['DQ.ACK'];
export const GIVEN_BACK: Outcome = ['DQ.NACK', 'NOCOUNT'];
/**
 * The outcome of a handler whose result cannot be stored. A caller sees it by an empty result, which no handler has.
 */
export const UNSTORED: Outcome = ['DQ.COMPLETE', 'RESULT', ''];

/**
 * Returns the outcome of a handler that returned. The result of a job is stored as JSON, and that of another message
 * too unless it is a text; bytes are stored as they are, and empty ones not at all. Throws if the result cannot be
 * stored.
 */
export function ofResult(result: unknown, job: Job): Outcome {
  if (result === undefined) return ACK;
  const isBytes = result instanceof Uint8Array || (typeof result === 'string' && !job.isJob());
  const bytes = encode(isBytes ? (result as Bytes) : jsonOf(result, 'the result'));
  if (bytes.length > RESULT_BYTES) {
    throw new DqError(`the result has ${bytes.length} bytes, more than the ${RESULT_BYTES} that are kept`);
  }
  return bytes.length === 0 ? ACK : ['DQ.COMPLETE', 'RESULT', packed(bytes)];
}

/** Returns the outcome of a handler that threw. */
export function ofError(error: unknown): Outcome {
  const name = nameOf(error);
  if (error instanceof UnrecoverableError || name === 'UnrecoverableError') {
    return ['DQ.NACK', 'DEAD', 'ERROR', packed(cut(messageOf(error), ERROR_BYTES))];
  }
  const { after } = error instanceof Object ? (error as RetryError) : {};
  if ((error instanceof RetryError || name === 'RetryError') && (after === undefined || isDelay(after))) {
    const message = messageOf(error);
    const delay = after === undefined ? [] : ['DELAY', String(Math.round(after))];
    return ['DQ.NACK', ...delay, ...(message ? ['ERROR', packed(cut(message, ERROR_BYTES))] : [])];
  }
  const summary = summaryOf(error);
  const frames = framesOf(error);
  const room = ERROR_BYTES - summary.length - 1;
  const all = frames ? Buffer.concat([summary, Buffer.from('\n'), cut(frames, room)]) : summary;
  return ['DQ.NACK', 'ERROR', packed(all)];
}

/** Returns the name and the text of what was thrown, and of its causes. */
function summaryOf(error: unknown): Buffer {
  const causes = causesOf(error);
  // Half of the room is for the causes, which a long text would leave out.
  const most = causes.length === 0 ? SUMMARY_BYTES : SUMMARY_BYTES / 2;
  const own = cut(`${nameOf(error)}: ${messageOf(error)}`, most);
  const theirs = causes.map((cause) => `\ncaused by ${nameOf(cause)}: ${messageOf(cause)}`);
  return Buffer.concat([own, cut(theirs.join(''), SUMMARY_BYTES - own.length)]);
}

/** Returns the causes of an error that can be told, the nearest first, each once. */
function causesOf(error: unknown): unknown[] {
  const seen = [error];
  try {
    let cause = error instanceof Error ? error.cause : undefined;
    while (
      (cause instanceof Error || typeof cause === 'string') &&
      seen.length <= MOST_CAUSES &&
      !seen.includes(cause)
    ) {
      seen.push(cause);
      cause = cause instanceof Error ? cause.cause : undefined;
    }
  } catch {
    // A cause that cannot be read is left out, and those behind it.
  }
  return seen.slice(1);
}

function nameOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return 'thrown';
    return (error.name === 'Error' && error.constructor?.name) || String(error.name);
  } catch {
    return 'an error without a name';
  }
}

/**
 * Returns the text of what was thrown. That of several errors together, such as those of the addresses of a host, is
 * that of the first one if they have none of their own.
 */
export function messageOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return String(error);
    const first = error instanceof AggregateError && !error.message ? error.errors[0] : undefined;
    return first instanceof Error ? String(first.message) : String(error.message);
  } catch {
    return '(the text of this error cannot be read)';
  }
}

/** Returns where an error was thrown, the innermost function first. */
function framesOf(error: unknown): string {
  try {
    const lines = error instanceof Error ? String(error.stack ?? '').split('\n') : [];
    return lines.filter((line) => /^\s+at /.test(line) && !line.includes(__dirname)).join('\n');
  } catch {
    return '';
  }
}

/** Returns the first bytes of a text, up to the end of a character. */
function cut(text: string, most: number): Buffer {
  const bytes = encode(text);
  let end = Math.min(bytes.length, most);
  while (end < bytes.length && end > 0 && ((bytes[end] as number) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
}
