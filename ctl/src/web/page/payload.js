// A payload as text, as JSON or MessagePack, or as bytes. It is only ever shown as text.

import { el, set, show, text } from "./dom.js";
import { bytes, bytesOf, visible } from "./format.js";

/** How many bytes are shown as hex. */
const HEX = 64 * 1024;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A viewer of the bytes of a field. `save` is called to download all of them. */
export function viewer(title, save = null) {
  const modes = el("div", { class: "modes", role: "group", "aria-label": `${title}: show as` });
  const size = el("span", { class: "dim" });
  const body = el("pre", { tabindex: "0", role: "region", "aria-label": title });
  const note = el("p", { class: "dim" });
  const node = el("section", { class: "payload" }, el("div", { class: "payload-head" }, el("h2", {}, title), size, modes, save ? el("button", { type: "button", class: "small", click: () => save().catch((problem) => text(note, problem.message)) }, "Download") : null), body, note);
  let raw = null;
  let key = null;
  let chosen = null;

  function draw(views) {
    const mode = views.find(([name]) => name === chosen) ?? views[0];
    for (const button of modes.children) set(button, "aria-pressed", String(button.textContent === mode[0]));
    body.classList.toggle("rows", mode[0] === "Hex");
    text(body, mode[1]());
  }

  function update(object, name, total) {
    const next = object[name] ?? object[`${name}-base64`] ?? null;
    show(node, next !== null);
    if (next === null || next === key) return;
    key = next;
    raw = bytesOf(object, name);
    const isCut = total > raw.length;
    const views = viewsOf(raw, isCut);
    modes.replaceChildren(...views.map(([mode]) => el("button", { type: "button", click: () => { chosen = mode; draw(views); } }, mode)));
    text(size, bytes(total ?? raw.length));
    text(note, isCut ? `The first ${bytes(raw.length)} are shown. Download it to see all of it.` : "");
    draw(views);
  }
  return { node, update };
}

/** One line for a list. */
export function snippet(object, name) {
  const raw = bytesOf(object, name);
  if (raw === null) return "";
  if (raw.length === 0) return "(empty payload)";
  const plain = asText(raw);
  if (plain !== null) return visible(plain).replace(/\s+/g, " ");
  const packed = asMessagePack(raw);
  return packed !== null ? `MessagePack ${packed.replace(/\s+/g, " ")}` : `Binary ${hexLine(raw.subarray(0, 32))}`;
}

function viewsOf(raw, isCut) {
  const plain = asText(raw);
  const views = [];
  if (plain !== null) {
    const json = indented(plain, isCut);
    if (json !== null) views.push(["JSON", () => visible(json)]);
    views.push(["Text", () => visible(plain)]);
  } else {
    const packed = asMessagePack(raw);
    if (packed !== null) views.push(["MessagePack", () => visible(packed)]);
  }
  views.push(["Hex", () => hexDump(raw)], ["Base64", () => base64(raw)]);
  return views;
}

function asText(raw) {
  try {
    return decoder.decode(raw);
  } catch {
    return null;
  }
}

/** JSON with line breaks, without reading its numbers: they may have more digits than numbers of JavaScript. */
export function indented(source, isCut) {
  if (!/^\s*[{[]/.test(source)) return null;
  try {
    JSON.parse(source);
  } catch {
    // Of a part it cannot be known whether the rest is JSON too.
    if (!isCut) return null;
  }
  let depth = 0;
  const tokens = source.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const line = () => `\n${"  ".repeat(depth)}`;
  return tokens.map((token, index) => {
    const next = tokens[index + 1];
    if (token === "{" || token === "[") {
      if (next === "}" || next === "]") return token;
      depth += 1;
      return token + line();
    }
    if (token === "}" || token === "]") {
      const before = tokens[index - 1];
      if (before === "{" || before === "[") return token;
      depth -= 1;
      return line() + token;
    }
    if (token === ",") return token + line();
    return token === ":" ? ": " : token;
  }).join("");
}

function hexLine(raw) {
  return Array.from(raw, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

function hexDump(raw) {
  const lines = [];
  for (let at = 0; at < Math.min(raw.length, HEX); at += 16) {
    const row = raw.subarray(at, at + 16);
    const letters = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hexLine(row).padEnd(47)}  ${letters}`);
  }
  if (raw.length > HEX) lines.push(`… and ${bytes(raw.length - HEX)} more`);
  return lines.join("\n");
}

function base64(raw) {
  let letters = "";
  for (let at = 0; at < raw.length; at += 8192) letters += String.fromCharCode(...raw.subarray(at, at + 8192));
  return btoa(letters).replace(/.{76}/g, "$&\n");
}

/** A payload that is one map or array of MessagePack, as indented text; null if it is not. */
function asMessagePack(raw) {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  let at = 0;
  const take = (size) => {
    if (at + size > raw.length) throw new Error("too short");
    at += size;
    return at - size;
  };
  const uint = (size) => {
    const from = take(size);
    if (size === 8) return view.getBigUint64(from);
    return size === 1 ? view.getUint8(from) : size === 2 ? view.getUint16(from) : view.getUint32(from);
  };
  const int = (size) => {
    const from = take(size);
    if (size === 8) return view.getBigInt64(from);
    return size === 1 ? view.getInt8(from) : size === 2 ? view.getInt16(from) : view.getInt32(from);
  };
  const string = (size) => JSON.stringify(decoder.decode(raw.subarray(take(size), at)));
  const binary = (size) => `<${hexLine(raw.subarray(take(size), at))}>`;
  const items = (size, open, close, depth, item) => {
    if (depth > 64) throw new Error("too deep");
    if (size === 0) return open + close;
    const inner = "  ".repeat(depth + 1);
    const parts = [];
    for (let index = 0; index < size; index += 1) parts.push(inner + item(depth + 1));
    return `${open}\n${parts.join(",\n")}\n${"  ".repeat(depth)}${close}`;
  };
  const array = (size, depth) => items(size, "[", "]", depth, value);
  const map = (size, depth) => items(size, "{", "}", depth, (inner) => `${value(inner)}: ${value(inner)}`);
  function value(depth) {
    const type = uint(1);
    if (type < 0x80) return String(type);
    if (type < 0x90) return map(type & 15, depth);
    if (type < 0xa0) return array(type & 15, depth);
    if (type < 0xc0) return string(type & 31);
    if (type >= 0xe0) return String(type - 256);
    switch (type) {
      case 0xc0: return "null";
      case 0xc2: return "false";
      case 0xc3: return "true";
      case 0xc4: case 0xc5: case 0xc6: return binary(uint(1 << (type - 0xc4)));
      case 0xc7: case 0xc8: case 0xc9: { const size = uint(1 << (type - 0xc7)); return `ext ${int(1)} ${binary(size)}`; }
      case 0xca: return String(view.getFloat32(take(4)));
      case 0xcb: return String(view.getFloat64(take(8)));
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return String(uint(1 << (type - 0xcc)));
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return String(int(1 << (type - 0xd0)));
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return `ext ${int(1)} ${binary(1 << (type - 0xd4))}`;
      case 0xd9: case 0xda: case 0xdb: return string(uint(1 << (type - 0xd9)));
      case 0xdc: case 0xdd: return array(uint(type === 0xdc ? 2 : 4), depth);
      case 0xde: case 0xdf: return map(uint(type === 0xde ? 2 : 4), depth);
      default: throw new Error("no such type");
    }
  }
  try {
    const isContainer = raw.length > 1 && (raw[0] >> 4 === 8 || raw[0] >> 4 === 9 || (raw[0] >= 0xdc && raw[0] <= 0xdf));
    const packed = isContainer ? value(0) : null;
    return at === raw.length ? packed : null;
  } catch {
    return null;
  }
}
