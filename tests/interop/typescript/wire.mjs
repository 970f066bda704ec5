// The pipe to the server: starts it, and keeps what went over it in both directions.

import { StringDecoder } from 'node:string_decoder';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

const running = new Set();

/** To be called when the script ends early, so that no server stays behind. */
export function killServers() {
  for (const server of running) server.kill('SIGKILL');
}

/**
 * The package starts a second process to ask what a server speaks, unless the transport is a subclass:
 * then it asks on the pipe that it goes on to use.
 */
class InPlaceTransport extends StdioClientTransport {}

export class Wire {
  sent = [];
  received = [];
  /** Lines on the server's stdout that are not messages. */
  faults = [];
  /** What the package complained of. */
  complaints = [];
  /** The process of the server. */
  server;

  constructor(command, { inPlace = false } = {}) {
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
