// The interop server in TypeScript with `@modelcontextprotocol/server` 2.x: `--stdio`, `--http` or `--sse`. What it offers
// is in ../README.md.

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import {
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
  isLegacyRequest,
  McpServer,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { SSEServerTransport } from '@modelcontextprotocol/server-legacy/sse';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { endWithInput, listen, listenSse, readJson, Sessions, sleep } from '../typescript.mjs';

const COUNTER = 'test://counter';
const NAMES = ['alice', 'albert', 'bob'];
const PERSON = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', default: 30 } },
  required: ['name'],
};
const PROMPTS = [{ name: 'greet', arguments: [{ name: 'name', required: true }] }, { name: 'plain' }, { name: 'third' }];

let counter = 0;
/** The servers of legacy connections whose client subscribed. */
const subscribers = new Set();

const text = (value, more) => ({ content: [{ type: 'text', text: String(value) }], ...more });

/**
 * Makes the server of a connection, or of one modern request over HTTP. Only then are there listeners elsewhere:
 * `notifier` tells them what has changed.
 */
function create({ era }, notifier) {
  const capabilities = { logging: {}, resources: { subscribe: true }, tools: { listChanged: true } };
  const mcp = new McpServer({ name: 'interop', version: '2.0.0' }, { capabilities });
  const { server } = mcp;
  addTools(mcp, async () => {
    if (notifier) {
      notifier.resourceUpdated(COUNTER);
      notifier.toolsChanged();
    } else {
      // On a modern pipe the package picks those that the client listens to.
      const updated = era === 'modern' ? [server] : subscribers;
      for (const subscriber of updated) await subscriber.sendResourceUpdated({ uri: COUNTER });
      await server.sendToolListChanged();
    }
  });
  addResources(mcp);
  addPrompts(mcp);
  if (era === 'legacy') {
    server.setRequestHandler('resources/subscribe', () => {
      subscribers.add(server);
      return {};
    });
    server.setRequestHandler('resources/unsubscribe', () => {
      subscribers.delete(server);
      return {};
    });
    server.onclose = () => subscribers.delete(server);
  }
  return mcp;
}

/** What asks the client asks in rounds; for legacy clients the package makes requests of them. */
function addTools(mcp, changed) {
  const numbers = z.object({ a: z.number(), b: z.number() });
  mcp.registerTool('add', { inputSchema: numbers, outputSchema: z.object({ sum: z.number() }) }, ({ a, b }) =>
    text(a + b, { structuredContent: { sum: a + b } }),
  );
  mcp.registerTool('fail', {}, () => text('as asked', { isError: true }));
  mcp.registerTool('slow', { inputSchema: z.object({ steps: z.int() }) }, async ({ steps }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress += 1) {
      await sleep(20);
      if (progressToken === undefined) continue;
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: steps } });
    }
    return text('done');
  });
  mcp.registerTool('wait', {}, async ({ mcpReq }) => {
    if (await sleep(60_000, mcpReq.signal)) console.error('cancelled');
    return text('waited');
  });
  mcp.registerTool('ask', {}, ({ mcpReq }) => {
    const person = inputResponse(mcpReq.inputResponses, 'person');
    if (person.kind === 'missing') {
      const form = inputRequired.elicit({ message: 'Who are you?', requestedSchema: PERSON });
      return inputRequired({ inputRequests: { person: form } });
    }
    const { action, content } = person;
    if (action === 'accept') return text(`accepted ${content.name} ${content.age ?? 'missing'}`);
    return text(action === 'decline' ? 'declined' : 'cancelled');
  });
  mcp.registerTool('sample', {}, ({ mcpReq }) => {
    const said = inputResponse(mcpReq.inputResponses, 'said');
    if (said.kind === 'missing') {
      const messages = [{ role: 'user', content: { type: 'text', text: 'Say something.' } }];
      return inputRequired({ inputRequests: { said: inputRequired.createMessage({ messages, maxTokens: 100 }) } });
    }
    return text(said.result.content.text);
  });
  mcp.registerTool('roots', {}, ({ mcpReq }) => {
    const listed = inputResponse(mcpReq.inputResponses, 'roots');
    if (listed.kind === 'missing') return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    return text(listed.roots.map(({ uri }) => uri).join(' '));
  });
  mcp.registerTool('log', {}, async ({ mcpReq }) => {
    await mcpReq.log('info', 'hello log');
    return text('logged');
  });
  mcp.registerTool('touch', {}, async () => {
    counter += 1;
    await changed();
    return text(counter);
  });
  mcp.registerTool('drop', {}, ({ http }) => {
    http?.closeSSE?.();
    return text('resumed');
  });
}

function addResources(mcp) {
  const contents = (uri, content) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: content }] });
  mcp.registerResource('hello', 'test://hello', {}, (uri) => contents(uri, 'hello'));
  mcp.registerResource('counter', COUNTER, {}, (uri) => contents(uri, String(counter)));
  const echo = new ResourceTemplate('test://echo/{text}', { list: undefined });
  mcp.registerResource('echo', echo, {}, (uri, { text: echoed }) => contents(uri, decodeURIComponent(echoed)));
}

function addPrompts(mcp) {
  const said = (content) => ({ messages: [{ role: 'user', content: { type: 'text', text: content } }] });
  const name = completable(z.string(), (typed) => NAMES.filter((known) => known.startsWith(typed)));
  const greeting = z.object({ name });
  mcp.registerPrompt('greet', { argsSchema: greeting }, ({ name: greeted }) => said(`Hello, ${greeted}!`));
  mcp.registerPrompt('plain', {}, () => said('plain'));
  mcp.registerPrompt('third', {}, () => said('third'));
  // The package lists all of them at once.
  mcp.server.setRequestHandler('prompts/list', ({ params }) => {
    const start = Number(params?.cursor ?? 0);
    const end = start + 2;
    return { prompts: PROMPTS.slice(start, end), nextCursor: end < PROMPTS.length ? String(end) : undefined };
  });
}

async function connect(transport) {
  await create({ era: 'legacy' }).connect(transport);
  return transport;
}

/** Serves both eras on one endpoint: the package leaves sessions of legacy clients to its user. */
function serveHttp() {
  const sessions = new Sessions((options) => connect(new NodeStreamableHTTPServerTransport(options)));
  const handler = createMcpHandler((context) => create(context, handler.notify), { legacy: 'reject' });
  const modern = toNodeHandler(handler);
  listen({
    '/mcp': async (request, response) => {
      const body = await readJson(request);
      const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
      await (isLegacy ? sessions.handle(request, response, body) : modern(request, response, body));
    },
  });
}

switch (process.argv[2]) {
  case '--stdio':
    serveStdio(create);
    endWithInput();
    break;
  case '--http':
    serveHttp();
    break;
  case '--sse':
    listenSse((path, response) => connect(new SSEServerTransport(path, response)));
    break;
  default:
    console.error('--stdio, --http or --sse');
    process.exit(2);
}
