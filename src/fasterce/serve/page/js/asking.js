// While someone drags, questions would pile up: one is on its way, the latest waits, the others are forgotten.
const APART = 60;
const PATIENCE = 1200;

export class Latest {
  // `ask(signal)` builds the question when it is sent, `show(answer, since)` and `fail(trouble)` take what comes of it.
  constructor(ask, show, fail) {
    Object.assign(this, { ask, show, fail, flight: null, timer: null, since: null, sent: 0 });
  }

  soon() {
    this.since ??= performance.now();
    if (this.flight) {
      if (performance.now() - this.sent > PATIENCE) this.flight.abort();
      return;
    }
    this.timer ??= setTimeout(() => this.#send(), Math.max(0, this.sent + APART - performance.now()));
  }

  // The question on its way is about someone else.
  forget() {
    clearTimeout(this.timer);
    this.flight?.abort();
    Object.assign(this, { timer: null, flight: null, since: null });
  }

  async #send() {
    const flight = new AbortController(), since = this.since;
    Object.assign(this, { timer: null, flight, since: null, sent: performance.now() });
    try {
      const answer = await this.ask(flight.signal);
      if (this.flight === flight) this.show(answer, since);
    } catch (error) {
      if (error.name !== "AbortError" && this.flight === flight) this.fail(error);
    } finally {
      if (this.flight === flight) this.#landed();
    }
  }

  #landed() {
    this.flight = null;
    if (this.since !== null) this.soon();
  }
}
