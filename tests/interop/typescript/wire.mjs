// The way to the server: a pipe or HTTP. Keeps what went over it in both directions.

import { StringDecoder } from 'node:string_decoder';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

const running = new Set();

/** To be called when the script ends early, so that no server stays behind. */
export function killServers() {
  for (const server of running) server.kill('SIGKILL');
}

export class Wire {
  sent = [];
  received = [];
  /** What the server sent where only messages belong. */
  faults = [];
  /** What the package complained of. */
  complaints = [];
  isHttp = false;
  /** Whether legacy clients are forgotten after each request. */
  isStateless = false;

  /** The request that the client sent last for the method (and tool or prompt). */
  lastRequest(method, name) {
    const found = this.sent.findLast(
      (m) => m.method === method && 'id' in m && (name === undefined || m.params.name === name),
    );
    if (!found) throw new Error(`${method} was not sent`);
    return found;
  }

  requestsOfServer(method) {
    return this.received.filter((m) => 'method' in m && 'id' in m && (method === undefined || m.method === method));
  }

  /** The notifications of the server, from the given index of `received` on. */
  notifications(method, since = 0) {
    return this.received.slice(since).filter((m) => m.method === method && !('id' in m));
  }

  answers(id) {
    return this.received.filter((m) => !('method' in m) && m.id === id);
  }

  /** Whether the client told the server that it gave up the request. */
  cancelled(id) {
    return this.sent.some((m) => m.method === 'notifications/cancelled' && m.params.requestId === id);
  }
}

/**
 * The package starts a second process to ask what a server speaks, unless the transport is a subclass:
 * then it asks on the pipe that it goes on to use.
 */
class InPlaceTransport extends StdioClientTransport {}

class Pipe extends Wire {
  /** The process of the server. */
  server;

  constructor(command, { inPlace = false } = {}) {
    super();
    const Transport = inPlace ? InPlaceTransport : StdioClientTransport;
    this.transport = new Transport({ command: command[0], args: command.slice(1) });
    this.#watch(this.transport);
  }

  #watch(transport) {
    const { send, start } = transport;
    transport.send = (message, options) => {
      this.sent.push(structuredClone(message));
      return send.call(transport, message, options);
    };
    transport.start = async () => {
      await start.call(transport);
      this.server = transport._process;
      running.add(this.server);
      this.server.on('exit', () => running.delete(this.server));
      this.#watchLines(this.server.stdout);
    };
  }

  /** Reads the lines beside the package, which drops what it does not understand. */
  #watchLines(stdout) {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    stdout.prependListener('data', (chunk) => {
      const lines = (rest + decoder.write(chunk)).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        try {
          this.received.push(JSON.parse(line));
        } catch {
          this.faults.push(line);
        }
      }
    });
  }
}

class Http extends Wire {
  isHttp = true;
  /** What was asked and answered: verb, headers, status, media type. */
  exchanges = [];
  #signals = new Map();

  constructor(url, isStateless) {
    super();
    this.isStateless = isStateless;
    const watched = async (address, init) => {
      const response = await fetch(address, init);
      const type = response.headers.get('content-type');
      this.exchanges.push({
        verb: init.method,
        asked: new Headers(init.headers),
        told: response.headers,
        status: response.status,
        type,
      });
      return response;
    };
    this.transport = new StreamableHTTPClientTransport(new URL(url), { fetch: watched });
    this.#watch(this.transport);
  }

  #watch(transport) {
    const { send } = transport;
    transport.send = (message, options) => {
      this.sent.push(structuredClone(message));
      if ('id' in message) this.#signals.set(message.id, options?.requestSignal);
      return send.call(transport, message, options);
    };
    let take;
    Object.defineProperty(transport, 'onmessage', {
      get: () => take && ((message, extra) => {
        this.received.push(structuredClone(message));
        take(message, extra);
      }),
      set: (handler) => (take = handler),
    });
  }

  /** In the modern era that is said by closing the response. */
  cancelled(id) {
    return super.cancelled(id) || this.closed(id);
  }

  closed(id) {
    return this.#signals.get(id)?.aborted === true;
  }

  /** The last request that is named so by its header: a tool, a prompt or a resource. */
  lastExchange(name) {
    return this.exchanges.findLast(({ asked }) => asked.get('mcp-name') === name);
  }
}

/** What is driven: a command to start for each connection, or the address of what runs already. */
export class Server {
  constructor({ command, url, hasSessions }) {
    Object.assign(this, { command, url, hasSessions });
  }

  wire(options) {
    return this.url ? new Http(this.url, !this.hasSessions) : new Pipe(this.command, options);
  }
}
