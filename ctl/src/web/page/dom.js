// Makes and changes elements. Text only ever becomes a text node, so nothing that a queue holds can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children. An attribute that is a function listens to the event of its name. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else set(node, name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Sets an attribute, or removes it if the value is null, undefined or false. */
export function set(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value === true ? "" : value)) {
    node.setAttribute(name, value === true ? "" : value);
  }
}

/** Changes a text only if it differs, so that selections and screen readers are not disturbed. */
export function text(node, value) {
  const string = String(value);
  if (node.textContent !== string) node.textContent = string;
}

export function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/**
 * Makes the children of a container those of a list. Elements of items that stay are kept, with their focus: `make` builds
 * one for a key, and `update` fills it in.
 */
export function list(container, items, key, make, update) {
  const wanted = new Set(items.map(key));
  const stays = (child) => wanted.has(child.dataset.key);
  const before = [...container.children];
  const active = document.activeElement;
  const focused = before.findIndex((child) => child.contains(active));
  const kept = new Map(before.filter(stays).map((child) => [child.dataset.key, child]));
  for (const child of before) if (kept.get(child.dataset.key) !== child) child.remove();
  let place = container.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let node = kept.get(name);
    kept.delete(name);
    if (!node) {
      node = make(item);
      node.dataset.key = name;
    }
    if (node === place) place = place.nextElementSibling;
    else container.insertBefore(node, place);
    update(node, item);
  }
  if (focused < 0 || document.activeElement === active) return;
  // What was moved has lost the focus. If it is gone, the focus goes on to the item that takes its place.
  const next = before.slice(focused + 1).find(stays) ?? before.slice(0, focused).findLast(stays) ?? container.firstElementChild;
  (active.isConnected ? active : next?.querySelector(active.tagName) ?? next?.querySelector("a, button"))?.focus({ preventScroll: true });
}

/** A definition list of names and values, which are texts; those with an address are links. */
export function pairs(container, entries) {
  list(
    container,
    entries,
    ([name]) => name,
    ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
    (node, [, value, title, href]) => {
      const place = node.lastElementChild;
      if (href && !place.firstElementChild) place.replaceChildren(el("a"));
      text(href ? place.firstElementChild : place, value);
      if (href) set(place.firstElementChild, "href", href);
      set(place, "title", title);
    },
  );
}

/** Letters at the end of a long name that are seen however narrow its place is. */
const END = 16;
const ruler = document.createElement("canvas").getContext("2d");

/** A name that is cut in the middle where it does not fit, because names often differ at their ends alone. Its text stays whole. */
export function nameOf(words) {
  const letters = [...words];
  if (letters.length <= 2 * END) return words;
  const end = letters.slice(-END).join("");
  const node = el("span", { class: "cut" }, el("span", {}, letters.slice(0, -END).join("")), el("span", {}, end));
  // A little more than it takes in any weight and size, so that it is not cut itself.
  ruler.font = `600 16px ${getComputedStyle(document.body).fontFamily}`;
  node.style.setProperty("--end", `${ruler.measureText(end).width / 16 + 0.5}em`);
  return node;
}

/** A name in one line. If it is cut, a click shows the whole. */
export function whole(words) {
  const button = el("button", { type: "button", class: "whole", title: words, click: () => set(button, "aria-expanded", button.getAttribute("aria-expanded") === "true" ? "false" : "true"), "aria-expanded": "false" }, nameOf(words));
  return button;
}

export function canFocus(node) {
  return node.isConnected && !node.disabled && node.offsetParent !== null;
}

/** Gives the focus back to an element, or to another button of its group, or to the view. */
export function refocus(node) {
  const others = node?.closest("[role=group]")?.querySelectorAll("button") ?? [];
  const next = [node, ...others].find((one) => one && one !== document.body && canFocus(one));
  (next ?? document.getElementById("main")).focus({ preventScroll: true });
}
