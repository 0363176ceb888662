// Numbers, times and names as a person reads them.

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];
const SPANS = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000, w: 604800000 };
/** Controls, and marks that make text look like other text: shown as escapes. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** What a name on the command line cannot hold, and a backslash that would be read as the beginning of an escape. */
const UNTYPED = /[\u0000-\u001f\u007f-\u009f]|\\(?=x(?:[01][0-9a-f]|7f|[89a-f][0-9a-f]|5c))/gi;

/** How far the clock of the server is ahead of this one, in ms. */
let ahead = 0;

export function learnClock(now) {
  if (Number.isFinite(now)) ahead = now - Date.now();
}

export function now() {
  return Date.now() + ahead;
}

export function count(number) {
  return Number.isFinite(number) ? number.toLocaleString("en-US") : "–";
}

/** `1 message`, `2 messages`. */
export function many(number, one, several = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : several}`;
}

export function rate(number) {
  if (!Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  return number < 10 ? number.toFixed(1) : count(Math.round(number));
}

export function bytes(number) {
  if (!Number.isFinite(number)) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (number >= size) return `${(number / size).toFixed(1)} ${unit}`;
  }
  return many(number, "byte");
}

/** Milliseconds in at most two units. */
export function span(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
  if (ms < 10000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const first = UNITS.findIndex(([, unit]) => ms >= unit);
  const [name, unit] = UNITS[first];
  const [small, smaller] = UNITS[first + 1] ?? ["", Infinity];
  const rest = Math.floor((ms % unit) / smaller);
  return `${Math.floor(ms / unit)} ${name}${rest > 0 ? ` ${rest} ${small}` : ""}`;
}

/** Milliseconds with all units, for what somebody has set. */
export function exactSpan(ms) {
  if (!Number.isFinite(ms) || ms <= 0) return span(ms);
  let rest = ms;
  const parts = [...UNITS, ["ms", 1]].map(([name, unit]) => {
    const number = Math.floor(rest / unit);
    rest %= unit;
    return number > 0 ? `${count(number)} ${name}` : "";
  });
  return parts.filter(Boolean).join(" ");
}

/** Milliseconds as they are typed: what `parseSpan` reads. */
export function typedSpan(ms) {
  return ms > 0 ? exactSpan(ms).replace(/min/g, "m").replace(/[ ,]/g, "") : "0";
}

/** `in 5 min`, or `5 min ago`. */
export function distance(at) {
  if (!Number.isFinite(at)) return "–";
  const ms = at - now();
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

export function instant(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString().replace("T", " ").replace("Z", " UTC");
}

export function clock(at) {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** The ms of `15m`, `1h30m` or `0`; null if it is none of these. */
export function parseSpan(text) {
  const compact = text.trim().replace(/\s+/g, "");
  if (compact === "0") return 0;
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d|w))+$/.test(compact)) return null;
  let total = 0;
  for (const [, number, , unit] of compact.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d|w)/g)) total += number * SPANS[unit];
  return Math.round(total);
}

/** Text in which all characters are visible. */
export function visible(text) {
  return text.replace(HIDDEN, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
}

/** The bytes of a field, which is `NAME` or `NAME-base64`; null if it is neither. If both are there, `NAME` has marks in place of bytes. */
export function bytesOf(object, name) {
  const encoded = object[`${name}-base64`];
  if (typeof encoded === "string") return Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  return typeof object[name] === "string" ? new TextEncoder().encode(object[name]) : null;
}

/** A name, an id or an error, as it is shown: controls and bytes that are not UTF-8 as the escapes that dqctl reads. */
export function shown(object, name) {
  const isText = typeof object[name] === "string" && object[`${name}-base64`] === undefined;
  if (isText) return object[name] === "" ? "(empty)" : visible(object[name].replace(UNTYPED, (mark) => escapes(new TextEncoder().encode(mark))));
  const raw = bytesOf(object, name);
  if (!raw) return "";
  const letters = Array.from(raw, (byte) => String.fromCharCode(byte)).join("");
  return letters.replace(UNTYPED, (mark) => escapes([mark.charCodeAt(0)])).replace(/[^ -~]/g, (mark) => escapes([mark.charCodeAt(0)]));
}

function escapes(bytes) {
  return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

/** The parameter by which the API and the address of a view name a field: `{queue: "mail"}` or `{"queue-base64": "/w=="}`. */
export function param(object, name) {
  const encoded = `${name}-base64`;
  const key = typeof object[encoded] === "string" ? encoded : name;
  return { [key]: object[key] };
}

/** The address of a view. */
export function address(view, params = {}) {
  const query = new URLSearchParams(params).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}
