// SPDX-License-Identifier: GPL-2.0-only
//
// A browser starts no worker for a page that is opened as a file, and the search runs in one. So
// there a worker is a hidden frame with the same script. The theme's offline plugin would fetch a
// stand-in of that name from the network each time.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.addEventListener("load", () => this.fill(frame.contentWindow, String(url)), {
        once: true,
      });
      document.body.append(frame);
    }

    fill(inner, url) {
      // What the script calls as a worker would.
      inner.postMessage = (data) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
      };
      inner.importScripts = (...urls) =>
        urls.reduce((before, one) => before.then(() => this.load(inner, one)), Promise.resolve());
      this.load(inner, url).then(() => {
        this.inner = inner;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    load(inner, url) {
      return new Promise((done, failed) => {
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        inner.document.body.append(script);
      });
    }

    postMessage(data) {
      if (this.inner) {
        this.inner.dispatchEvent(new MessageEvent("message", { data }));
      } else {
        this.waiting.push(data);
      }
    }

    terminate() {}
  };
}
