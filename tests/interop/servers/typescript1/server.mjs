// The interop server in TypeScript with `@modelcontextprotocol/sdk` 1.x: `--stdio`, `--http` or `--sse`. What it offers
// is in ../README.md.

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { ListPromptsRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
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
const subscribers = new Set();

const text = (value, more) => ({ content: [{ type: 'text', text: String(value) }], ...more });

/** Makes the server of one connection. */
function create() {
  const capabilities = { logging: {}, resources: { subscribe: true }, tools: { listChanged: true } };
  const mcp = new McpServer({ name: 'interop', version: '1.0.0' }, { capabilities });
  const { server } = mcp;
  addTools(mcp);
  addResources(mcp);
  addPrompts(mcp);
  server.setRequestHandler(SubscribeRequestSchema, () => {
    subscribers.add(server);
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, () => {
    subscribers.delete(server);
    return {};
  });
  server.onclose = () => subscribers.delete(server);
  return mcp;
}

function addTools(mcp) {
  const { server } = mcp;
  const numbers = { a: z.number(), b: z.number() };
  mcp.registerTool('add', { inputSchema: numbers, outputSchema: { sum: z.number() } }, ({ a, b }) =>
    text(a + b, { structuredContent: { sum: a + b } }),
  );
  mcp.registerTool('fail', {}, () => text('as asked', { isError: true }));
  mcp.registerTool('slow', { inputSchema: { steps: z.number().int() } }, async ({ steps }, extra) => {
    const progressToken = extra._meta?.progressToken;
    for (let progress = 1; progress <= steps; progress += 1) {
      await sleep(20);
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total: steps };
      await extra.sendNotification({ method: 'notifications/progress', params });
    }
    return text('done');
  });
  mcp.registerTool('wait', {}, async (extra) => {
    if (await sleep(60_000, extra.signal)) console.error('cancelled');
    return text('waited');
  });
  mcp.registerTool('ask', {}, async (extra) => {
    const form = { mode: 'form', message: 'Who are you?', requestedSchema: PERSON };
    const { action, content } = await server.elicitInput(form, { relatedRequestId: extra.requestId });
    if (action === 'accept') return text(`accepted ${content.name} ${content.age ?? 'missing'}`);
    return text(action === 'decline' ? 'declined' : 'cancelled');
  });
  mcp.registerTool('sample', {}, async (extra) => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'Say something.' } }];
    const said = await server.createMessage({ messages, maxTokens: 100 }, { relatedRequestId: extra.requestId });
    return text(said.content.text);
  });
  mcp.registerTool('roots', {}, async () => {
    // Not linked to the call: over HTTP it is asked on the GET stream.
    const { roots } = await server.listRoots();
    return text(roots.map(({ uri }) => uri).join(' '));
  });
  mcp.registerTool('log', {}, async (extra) => {
    const params = { level: 'info', data: 'hello log' };
    await extra.sendNotification({ method: 'notifications/message', params });
    return text('logged');
  });
  mcp.registerTool('touch', {}, async () => {
    counter += 1;
    for (const subscriber of subscribers) await subscriber.sendResourceUpdated({ uri: COUNTER });
    await server.sendToolListChanged();
    return text(counter);
  });
  mcp.registerTool('drop', {}, (extra) => {
    extra.closeSSEStream?.();
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
  mcp.registerPrompt('greet', { argsSchema: { name } }, ({ name: greeted }) => said(`Hello, ${greeted}!`));
  mcp.registerPrompt('plain', {}, () => said('plain'));
  mcp.registerPrompt('third', {}, () => said('third'));
  // The package lists all of them at once.
  mcp.server.setRequestHandler(ListPromptsRequestSchema, ({ params }) => {
    const start = Number(params?.cursor ?? 0);
    const end = start + 2;
    return { prompts: PROMPTS.slice(start, end), nextCursor: end < PROMPTS.length ? String(end) : undefined };
  });
}

async function connect(transport) {
  await create().connect(transport);
  return transport;
}

switch (process.argv[2]) {
  case '--stdio':
    await connect(new StdioServerTransport());
    endWithInput();
    break;
  case '--http': {
    const sessions = new Sessions((options) => connect(new StreamableHTTPServerTransport(options)));
    listen({
      '/mcp': async (request, response) => sessions.handle(request, response, await readJson(request)),
    });
    break;
  }
  case '--sse':
    listenSse((path, response) => connect(new SSEServerTransport(path, response)));
    break;
  default:
    console.error('--stdio, --http or --sse');
    process.exit(2);
}
