// JSON-RPC over the standard streams of a process, as the language server protocol has it.
"use strict";

class Connection {
  // `heard(method, params)` is called for what the server says by itself; what it returns is the answer.
  constructor(child, heard) {
    this.child = child;
    this.heard = heard;
    this.waiting = new Map();
    this.last = 0;
    this.rest = Buffer.alloc(0);
    child.stdout.on("data", (data) => this.read(data));
    child.stdin.on("error", () => this.end());
    child.on("exit", () => this.end());
  }

  read(data) {
    this.rest = Buffer.concat([this.rest, data]);
    for (;;) {
      const head = this.rest.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.rest.toString("ascii", 0, head))[1]);
      const body = head + 4;
      if (this.rest.length < body + length) return;
      const message = JSON.parse(this.rest.toString("utf8", body, body + length));
      this.rest = this.rest.subarray(body + length);
      this.take(message);
    }
  }

  take({ id, method, params, result, error }) {
    if (method !== undefined) {
      const answer = this.heard(method, params) ?? null;
      if (id !== undefined) this.send({ id, result: answer });
      return;
    }
    const [resolve, reject] = this.waiting.get(id) ?? [];
    this.waiting.delete(id);
    if (error) reject?.(new Error(error.message));
    else resolve?.(result);
  }

  send(message) {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    if (this.child.stdin.writable) this.child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, [resolve, reject]);
      this.send({ id, method, params });
    });
  }

  end() {
    for (const [, reject] of this.waiting.values()) reject(new Error("the server has ended"));
    this.waiting.clear();
  }
}

exports.Connection = Connection;
