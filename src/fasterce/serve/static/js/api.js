// The routes of the service; an error is a ServiceError with a text for the page.
const KEY = "fasterce-key";

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  drop: () => sessionStorage.removeItem(KEY),
};

export class ServiceError extends Error {
  constructor(kind, message, { status = 0, fields = [], retryAfter = null, request = null } = {}) {
    super(message);
    Object.assign(this, { kind, status, fields, retryAfter, request });
  }
}

const TEXTS = {
  401: ["key", "An access key is needed."],
  403: ["key", "This key may not do that."],
  404: ["gone", "That is not there."],
  413: ["input", "That is more than the service takes at once."],
  422: ["input", "Something in these details cannot be used."],
  429: ["busy", "The service has more to do than it can just now."],
  503: ["away", "The service cannot answer just now."],
  504: ["late", "The answer took too long and was given up."],
};

async function call(path, { method = "GET", body, signal, text = false } = {}) {
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("away", "The service cannot be reached.");
  }
  if (response.ok) return text ? response.text() : response.json();
  throw await errorOf(response);
}

async function errorOf(response) {
  const [kind, text] = TEXTS[response.status] ?? ["failed", "The service could not answer."];
  const body = await response.json().catch(() => ({}));
  const retry = Number.parseFloat(response.headers.get("Retry-After"));
  return new ServiceError(kind, kind === "input" || kind === "failed" ? body.error?.message ?? text : text, {
    status: response.status,
    fields: body.error?.fields ?? [],
    retryAfter: Number.isFinite(retry) ? retry : null,
    request: body.request_id ?? null,
  });
}

const query = (given) => new URLSearchParams(Object.entries(given).filter(([, value]) => value !== null)).toString();

export const artifacts = () => call("v1/artifacts");
export const schema = (artifact) => call(`v1/schema?${query({ artifact })}`);
export const explain = (body, signal) => call("v1/explain", { method: "POST", body, signal });
export const record = (id) => call(`v1/records/${encodeURIComponent(id)}`, { text: true });
export const letter = (id, body, signal) => call(`v1/records/${encodeURIComponent(id)}/letter`, { method: "POST", body, text: true, signal });
export const letters = (id) => call(`v1/records/${encodeURIComponent(id)}/letters`);
export const recordsOf = (subject) => call("v1/records/find", { method: "POST", body: { subject } });
export const recordsOfDecision = (decision) => call(`v1/records?${query({ decision })}`);
export const erase = (pseudonym) => call(`v1/records?${query({ subject: pseudonym })}`, { method: "DELETE" });
export const applicants = (artifact, text, first, count, signal) =>
  call(`v1/applicants?${query({ artifact, query: text, first, count })}`, { signal });

// "rows[0].duration", "ranges.duration" or "freeze[2]" -> the field it is about and the control that shows it.
export function fieldOf(path) {
  const found = /^(rows|ranges)(?:\[\d+\]|\.\d+)?[.[](.+?)\]?(?:\[\d+\]|\.\d+)?$/.exec(path ?? "");
  return found ? { part: found[1], name: found[2].replace(/^['"]|['"]$/g, "") } : { part: path ?? "", name: null };
}
