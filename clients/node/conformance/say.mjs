// Writes lines at once and whole, from whichever thread: what console.log writes in a thread goes through the main
// thread.
import { writeSync } from 'node:fs';

/** Writes an event. */
export function say(event, fields = {}) {
  // JSON.stringify escapes lone surrogates, which stand for bytes that are not UTF-8.
  writeSync(1, `${JSON.stringify({ event, ...fields })}\n`);
}
