// What both TypeScript servers need beside the packages: an HTTP server, sessions, and what was sent in them for clients
// that come back.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

/**
 * Serves below 127.0.0.1 and ends with standard input. `handlers` are functions of a request, its response and URL, by
 * path; it says where the first of them is.
 */
export function listen(handlers) {
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    const handle = handlers[url.pathname];
    if (!handle) return void response.writeHead(404).end();
    handle(request, response, url).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  const [path] = Object.keys(handlers);
  server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}${path}`));
  endWithInput();
}

export function endWithInput() {
  process.stdin.once('end', () => process.exit(0)).resume();
}

export async function readJson(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text ? JSON.parse(text) : undefined;
}

/** Refuses a request as the examples of the packages do; they leave the sessions to their users. */
export function refuse(response, status, code, message) {
  const error = { jsonrpc: '2.0', error: { code, message }, id: null };
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(error));
}

/** Serves legacy clients over Streamable HTTP: one transport for each session, that `connect(options)` makes. */
export class Sessions {
  #transports = new Map();

  constructor(connect) {
    this.connect = connect;
  }

  async handle(request, response, body) {
    const id = request.headers['mcp-session-id'];
    let transport = this.#transports.get(id);
    if (id && !transport) return refuse(response, 404, -32001, 'Session not found');
    if (!transport) {
      if (body?.method !== 'initialize') {
        return refuse(response, 400, -32000, 'Bad Request: No valid session ID provided');
      }
      transport = await this.connect({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 10,
        onsessioninitialized: (session) => this.#transports.set(session, transport),
        onsessionclosed: (session) => this.#transports.delete(session),
      });
    }
    await transport.handleRequest(request, response, body);
  }
}

/** Serves HTTP+SSE: one transport for each stream, that `connect(path, response)` makes. */
export function listenSse(connect) {
  const transports = new Map();
  listen({
    '/sse': async (request, response) => {
      if (request.method !== 'GET') return response.writeHead(405, { Allow: 'GET' }).end();
      const transport = await connect('/messages', response);
      transports.set(transport.sessionId, transport);
      response.on('close', () => transports.delete(transport.sessionId));
    },
    '/messages': async (request, response, url) => {
      const transport = transports.get(url.searchParams.get('sessionId'));
      if (!transport) return refuse(response, 404, -32001, 'Session not found');
      await transport.handlePostMessage(request, response);
    },
  });
}

/** Sleeps; returns early, with `true`, if cancelled. */
export function sleep(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), milliseconds);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}

/** The event store of one session. */
export class Events {
  #events = [];

  async storeEvent(stream, message) {
    return String(this.#events.push({ stream, message }) - 1);
  }

  async getStreamIdForEventId(id) {
    return this.#events[Number(id)]?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const { stream } = this.#events[Number(id)];
    for (let next = Number(id) + 1; next < this.#events.length; next += 1) {
      const { stream: of, message } = this.#events[next];
      // The first event of a stream has nothing to say.
      if (of === stream && 'jsonrpc' in message) await send(String(next), message);
    }
    return stream;
  }
}
