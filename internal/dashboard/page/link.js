// The stream from the server: it comes back by itself, and says when it is behind.

const silence = 20000; // milliseconds without a word after which the stream is taken for dead
const again = 2000;

export class Link {
  // handlers are called by the name of a message, and lost with why nothing comes.
  constructor(handlers, lost) {
    this.handlers = handlers;
    this.lost = lost;
    this.source = null;
    this.heard = 0;
    setInterval(() => this.check(), 1000);
  }

  // open asks for all rollouts, and for one in detail if a key is given.
  open(key) {
    this.key = key;
    this.close();
    const source = new EventSource(key ? `api/stream?rollout=${encodeURIComponent(key)}` : "api/stream");
    this.source = source;
    this.heard = Date.now();
    for (const [name, run] of Object.entries(this.handlers)) {
      source.addEventListener(name, (message) => {
        if (this.source !== source) return;
        this.heard = Date.now();
        run(JSON.parse(message.data));
      });
    }
    source.addEventListener("error", () => {
      if (this.source !== source) return;
      this.lost("The dashboard does not answer; it is tried again.");
      // A refusal ends the stream for good, but for this.
      if (source.readyState === EventSource.CLOSED) this.later(source);
    });
  }

  later(source) {
    setTimeout(() => {
      if (this.source === source) this.open(this.key);
    }, again);
  }

  check() {
    if (this.source && Date.now() - this.heard > silence) {
      this.lost("The dashboard has gone silent; it is asked again.");
      this.open(this.key);
    }
  }

  close() {
    this.source?.close();
    this.source = null;
  }
}
