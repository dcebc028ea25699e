// While someone drags a slider, requests would pile up: one is under way, the latest waits, the others are dropped.
// Milliseconds between two requests, and after which a request is given up for a newer one.
const INTERVAL_MS = 60;
const TIMEOUT_MS = 1200;

export class LatestRequest {
  // `send(signal)` builds and sends the request, `show(response, since)` and `fail(error)` take its result.
  constructor(send, show, fail) {
    Object.assign(this, { send, show, fail, pending: null, timer: null, since: null, sent: 0 });
  }

  // Send as soon as possible; the body is built then, from the newest values.
  request() {
    this.since ??= performance.now();
    if (this.pending) {
      if (performance.now() - this.sent > TIMEOUT_MS) this.pending.abort();
      return;
    }
    this.timer ??= setTimeout(() => this.#send(), Math.max(0, this.sent + INTERVAL_MS - performance.now()));
  }

  cancel() {
    clearTimeout(this.timer);
    this.pending?.abort();
    Object.assign(this, { timer: null, pending: null, since: null });
  }

  async #send() {
    const pending = new AbortController(), since = this.since;
    Object.assign(this, { timer: null, pending, since: null, sent: performance.now() });
    try {
      const response = await this.send(pending.signal);
      if (this.pending === pending) this.show(response, since);
    } catch (error) {
      if (error.name !== "AbortError" && this.pending === pending) this.fail(error);
    } finally {
      if (this.pending === pending) this.#done();
    }
  }

  #done() {
    this.pending = null;
    if (this.since !== null) this.request();
  }
}
