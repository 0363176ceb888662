/**
 * Text and bytes, and the shapes of replies. Names and ids are strings; bytes in them that are not UTF-8 become the
 * code units U+DC80 to U+DCFF and survive both ways.
 */
import { isUtf8 } from 'node:buffer';
import { inspect } from 'node:util';

/** A text, or any bytes. */
export type Bytes = string | Uint8Array;
/** A word of a command. */
export type Word = string | Buffer;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Returns what a value is, for errors about payloads and results, which do not show them. */
export function kindOf(value: unknown): string {
  return value === null || typeof value !== 'object' ? typeof value : (value.constructor?.name ?? 'object');
}

/** Returns the bytes of a text. `what` names the value in the error for one that is neither. */
export function encode(value: Bytes, what = 'an id'): Buffer {
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value !== 'string') throw new TypeError(`${what} must be a text or bytes, but is ${kindOf(value)}`);
  if (!LONE_SURROGATE.test(value)) return Buffer.from(value);
  const parts: Buffer[] = [];
  for (const character of value) {
    const code = character.codePointAt(0) as number;
    parts.push(code >= 0xdc80 && code <= 0xdcff ? Buffer.of(code & 0xff) : Buffer.from(character));
  }
  return Buffer.concat(parts);
}

/** Returns the bytes of texts. */
export const encoded = (values: readonly Bytes[], what?: string): Buffer[] => values.map((each) => encode(each, what));

/** Returns a value for an error. */
export function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : inspect(value, { depth: 0, breakLength: Infinity });
}

/** Returns bytes as text. */
export function decode(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString();
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] as number;
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const character = bytes.subarray(at, at + length);
    const valid = character.length === length && isUtf8(character);
    text += valid ? character.toString() : String.fromCharCode(0xdc00 + first);
    at += valid ? length : 1;
  }
  return text;
}

/** Returns a bulk string of a reply as text, a null as null, and anything else as it is. */
export function text(reply: unknown): string | null {
  if (reply === null || reply === undefined) return null;
  return reply instanceof Uint8Array ? decode(Buffer.from(reply)) : String(reply);
}

/** Returns the entries of a map, which is a flat array in RESP2, and an object or a `Map` with some clients. */
export function entries(reply: unknown): [string, unknown][] {
  if (reply === null || reply === undefined) return [];
  if (reply instanceof Map) return [...reply].map(([name, value]) => [text(name) as string, value]);
  if (!Array.isArray(reply)) return Object.entries(reply as object);
  const found: [string, unknown][] = [];
  for (let at = 0; at + 1 < reply.length; at += 2) found.push([text(reply[at]) as string, reply[at + 1]]);
  return found;
}

// Fields of a message that are not text.
const BINARY = new Set(['payload', 'result', 'checkpoint', 'then']);

/** Returns the fields of a message or of a queue, or null if there is none. */
export function fields<Fields>(reply: unknown): Fields | null {
  if (reply === null || reply === undefined) return null;
  return Object.fromEntries(entries(reply).map(([name, value]) => [name, field(name, value)])) as Fields;
}

function field(name: string, value: unknown): unknown {
  if (name === 'headers') return headers(value);
  if (Array.isArray(value) && name === 'errors') {
    return value.map(([attempt, at, error]) => ({ attempt, at, error: text(error) }));
  }
  if (value === null || typeof value === 'number') return value;
  // ioredis with stringNumbers: texts are bytes.
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  return BINARY.has(name) ? Buffer.from(value as Uint8Array) : text(value);
}

/** Returns the headers of a reply. */
export function headers(reply: unknown): Record<string, string> {
  return Object.fromEntries(entries(reply).map(([name, value]) => [name, text(value) as string]));
}
