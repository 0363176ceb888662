// The API of this server. The token, if one is needed, is kept for this tab only.

const TOKEN = "dq-token";
/** Requests time out after this time, so that the page can report it. */
const PATIENCE = 15000;

export class Problem extends Error {
  /** `status` is 0 if nothing answered. */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export async function read(path, params = {}) {
  const query = new URLSearchParams(params).toString();
  return send(`/api/${path}${query ? `?${query}` : ""}`, { method: "GET" }, PATIENCE);
}

export async function write(action, body) {
  const headers = { "X-DQ": "1", "Content-Type": "application/json" };
  return send(`/api/${action}`, { method: "POST", headers, body: JSON.stringify(body) }, 4 * PATIENCE);
}

/** The bytes of an answer that is no JSON. */
export async function readBytes(path, params) {
  const response = await ask(`/api/${path}?${new URLSearchParams(params)}`, { method: "GET" }, 4 * PATIENCE);
  if (!response.ok) throw new Problem(response.status, (await response.json()).error);
  return response.arrayBuffer();
}

async function ask(path, options, patience) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers };
  // Headers have bytes: a token of other characters is sent as its UTF-8.
  if (token) headers.Authorization = `Bearer ${String.fromCharCode(...new TextEncoder().encode(token))}`;
  return fetch(path, { ...options, headers, signal: AbortSignal.timeout(patience) });
}

async function send(path, options, patience) {
  let response;
  let answer;
  try {
    response = await ask(path, options, patience);
    answer = await response.json();
  } catch {
    throw new Problem(response ? response.status : 0, "dqctl web does not answer: is it still running?");
  }
  if (!response.ok) throw new Problem(response.status, answer.error ?? `status ${response.status}`);
  return answer;
}
