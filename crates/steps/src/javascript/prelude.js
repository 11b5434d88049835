// Defines the globals beside the language itself: `console`, and `fetch` with `secrets` if the workflow allows hosts.
// Runs before the code in the same fresh context; the host's functions stay private to this closure.
(function (log, ask, mark) {
  'use strict';
  const { parse, stringify } = JSON;
  // Not part of the language, and a finer clock than code needs.
  delete globalThis.performance;

  const show = (value) => {
    try {
      if (typeof value === 'string') return value;
      if (value instanceof Error) return `${value.name}: ${value.message}`;
      return stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}n` : part)) ?? String(value);
    } catch {
      return Object.prototype.toString.call(value);
    }
  };
  const write = (level) => (...parts) => log(level, parts.map(show).join(' ').toWellFormed());
  const hidden = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  hidden('console', Object.fromEntries(
    [['log', 'info'], ['info', 'info'], ['warn', 'warn'], ['error', 'error'], ['debug', 'debug']].map(
      ([name, level]) => [name, write(level)])));

  const waiting = new Map();
  if (mark !== undefined) {
    let last = 0;
    hidden('fetch', function fetch(url, options = {}) {
      return new Promise((resolve, reject) => {
        let { method = 'GET', headers = {}, body } = options ?? {};
        if (body !== undefined && body !== null && typeof body !== 'string') {
          throw new TypeError('the body of a fetch must be text; use JSON.stringify for an object');
        }
        if (Array.isArray(headers)) headers = Object.fromEntries(headers);
        const request = stringify({ url: String(url), method: String(method).toUpperCase(), headers, body });
        // The server enforces both limits as well; here they get a clear message.
        if (request.length > 1 << 20) throw new TypeError('a request may have at most 1 MB');
        if (last === 1000) throw new TypeError('a step may make at most 1000 requests');
        const id = ++last;
        waiting.set(id, { resolve, reject });
        ask(id, request);
      });
    });
    hidden('secrets', new Proxy(Object.freeze(Object.create(null)), {
      get: (_, name) => (typeof name === 'string' ? `${mark}.${name}.` : undefined),
    }));
  }

  // The language has no base64. Code may replace methods of strings and arrays, but only for itself.
  const encoded = (text) => {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const bytes = [];
    for (const character of text.toWellFormed()) {
      const code = character.codePointAt(0);
      if (code < 0x80) bytes.push(code);
      else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
      else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      else {
        const rest = [12, 6, 0].map((shift) => 0x80 | ((code >> shift) & 63));
        bytes.push(0xf0 | (code >> 18), ...rest);
      }
    }
    const parts = [];
    for (let at = 0; at < bytes.length; at += 3) {
      const three = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      const four = [18, 12, 6, 0].map((shift) => digits[(three >> shift) & 63]).join('');
      const missing = Math.max(0, at + 3 - bytes.length);
      parts.push(four.slice(0, 4 - missing) + '='.repeat(missing));
    }
    return parts.join('');
  };

  const respond = ({ status, headers, text, base64 }) => {
    const find = (name) => headers[String(name).toLowerCase()];
    return Object.freeze({
      ok: status >= 200 && status <= 299,
      status,
      headers: Object.freeze({
        get: (name) => find(name) ?? null,
        has: (name) => find(name) !== undefined,
        entries: () => Object.entries(headers)[Symbol.iterator](),
      }),
      text: async () => text,
      base64: async () => base64 ?? encoded(text),
      json: async () => parse(text),
    });
  };

  // A reference cycle is freed only by the garbage collector, which first runs when memory is short.
  const { deref } = WeakRef.prototype;
  const apply = Reflect.apply;
  const ring = (() => {
    const one = {};
    one.one = one;
    return new WeakRef(one);
  })();

  return {
    wasShort: () => apply(deref, ring, []) === undefined,

    fetched(id, answer) {
      const asked = waiting.get(id);
      if (asked === undefined) return;
      waiting.delete(id);
      const { Ok: response, Err: message } = parse(answer);
      if (message === undefined) asked.resolve(respond(response));
      else asked.reject(new TypeError(message));
    },

    // The result as JSON, or why it is not JSON.
    result(value) {
      let bad;
      const check = (key, part) => {
        const kind = typeof part;
        if (kind !== 'function' && kind !== 'symbol' && kind !== 'bigint') return part;
        const what = { bigint: 'a BigInt', function: 'a function', symbol: 'a symbol' }[kind];
        bad ??= key === '' ? `it is ${what}` : `${stringify(key)} in it is ${what}`;
        return null;
      };
      let json;
      try {
        json = stringify(value === undefined ? null : value, check);
      } catch (error) {
        if (!(error instanceof TypeError) || error.message !== 'circular reference') throw error;
        bad = 'it contains itself';
      }
      return bad === undefined ? ['good', json ?? 'null'] : ['bad', bad];
    },

    // A thrown value as [name, message, stack].
    describe(thrown) {
      if (!(thrown instanceof Error)) return ['', show(thrown).toWellFormed(), ''];
      const text = (value) => (typeof value === 'string' ? value.toWellFormed() : '');
      return [text(thrown.name), text(thrown.message), text(thrown.stack)];
    },
  };
});
