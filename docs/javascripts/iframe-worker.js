/* A page opened from disk may not start a worker, and the theme's search is one: run it in a hidden frame instead. */
(function () {
  if (location.protocol !== "file:" || !("Worker" in window)) return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.queue = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.appendChild(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.receive(data);
      this.inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => this.run(next)), Promise.resolve());
      this.run(new URL(url, location.href).href).then(() => {
        const waiting = this.queue;
        this.queue = null;
        waiting.forEach((data) => this.send(data));
      });
    }

    run(url) {
      const inside = this.inside.document;
      return new Promise((done, failed) => {
        const script = inside.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        inside.body.appendChild(script);
      });
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    send(data) {
      const event = new this.inside.MessageEvent("message", { data });
      this.inside.dispatchEvent(event);
    }

    postMessage(data) {
      if (this.queue) this.queue.push(data);
      else this.send(data);
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  }

  window.Worker = FrameWorker;
})();
