// One connection under test, and the checks that hold in every revision.

import { readFileSync } from 'node:fs';
import { Client, ProtocolError } from '@modelcontextprotocol/client';
import { Host, SAMPLED } from './host.mjs';
import { WAIT, equal, expect, sleep, until } from './report.mjs';

const FIXTURE = JSON.parse(readFileSync(new URL('../fixture.json', import.meta.url), 'utf8'));
export const WATCHED = 'test://watched-resource';
const SIMPLE = 'This is a simple text response for testing.';
export const INVALID_PARAMS = -32602;
/** Milliseconds after which something that should not come counts as not coming. */
export const QUIET = 300;
/** Milliseconds for each request that no check limits, such as the opening of a connection. */
export const CONNECT_WAIT = 10_000;
export const EVERYTHING = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };

export class Session {
  tools = [];

  constructor(report, revision, era, client, wire, host) {
    Object.assign(this, { report, revision, era, client, wire, host });
  }

  check(name, body, wait = WAIT) {
    return this.report.check(`${this.revision}/${name}`, body, wait);
  }

  notAvailable(name, why) {
    this.report.notAvailable(`${this.revision}/${name}`, why);
  }

  expected(kind) {
    return [...FIXTURE[kind].both, ...FIXTURE[kind][this.era]];
  }

  async call(name, args, { meta, ...options } = {}) {
    const params = { name };
    if (args !== undefined) params.arguments = args;
    if (meta !== undefined) params._meta = meta;
    const result = await this.client.callTool(params, options);
    expect(!result.isError, `${name} failed: ${textOf(result)}`);
    return result;
  }

  async text(name, args, options) {
    return textOf(await this.call(name, args, options));
  }
}

/** Opens a connection, runs the body with it, closes it. */
export async function connected(report, server, revision, era, { options, connect, inPlace, capabilities }, body) {
  const declared = capabilities ?? EVERYTHING;
  const wire = server.wire({ inPlace });
  const host = new Host();
  const client = new Client({ name: 'interop', version: '1.0.0' }, { capabilities: declared, ...options });
  host.serve(client, declared);
  client.onerror = (error) => wire.complaints.push(error.message);
  await client.connect(wire.transport, { timeout: CONNECT_WAIT, ...connect });
  const session = new Session(report, revision, era, client, wire, host);
  try {
    await body(session);
  } finally {
    await client.close();
  }
  return session;
}

export function textOf(result) {
  return result.content
    .filter((block) => block.type === 'text')
    .map((block) => block.text)
    .join(' ');
}

/** Expects the promise to end in an error response (with the code), and returns it. */
export async function refusal(promise, code) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error; // nothing that a server sent
    if (code !== undefined) equal(error.code, code, 'code');
    return error;
  }
  expect(false, `the server answered with a result: ${JSON.stringify(result)}`);
}

export async function checkLists(session) {
  const { client } = session;
  const listed = {};
  await session.check('tools/list', async () => {
    session.tools = (await client.listTools()).tools;
    listed.tool = checkNames(session.tools.map((tool) => tool.name), session.expected('tools'));
    for (const tool of session.tools) {
      expect(tool.description, `${tool.name} has no description`);
      equal(tool.inputSchema.type, 'object', `${tool.name} inputSchema.type`);
    }
  });
  await session.check('prompts/list', async () => {
    const { prompts } = await client.listPrompts();
    listed.prompt = checkNames(prompts.map((prompt) => prompt.name), session.expected('prompts'));
    expect(prompts.every((prompt) => prompt.description), 'a prompt has no description');
    const { arguments: args } = prompts.find((prompt) => prompt.name === 'test_prompt_with_arguments');
    equal(args.map((a) => [a.name, a.required]), [['arg1', true], ['arg2', true]], 'arguments');
  });
  await session.check('resources/list', async () => {
    const { resources } = await client.listResources();
    listed.resource = checkNames(resources.map((resource) => resource.uri), FIXTURE.resources);
  });
  await session.check('resources/templates/list', async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    listed.template = checkNames(resourceTemplates.map((template) => template.uriTemplate), FIXTURE.templates);
  });
  for (const [kind, names] of Object.entries(listed)) {
    for (const name of names) {
      session.notAvailable(`${kind}/${name}`, 'listed, but not among what this script knows for this revision');
    }
  }
}

/** Returns what is listed beyond what is expected. */
function checkNames(listed, expected) {
  const missing = expected.filter((name) => !listed.includes(name));
  expect(missing.length === 0, `not listed: ${missing.join(', ')}`);
  equal(new Set(listed).size, listed.length, 'number of different names');
  return listed.filter((name) => !expected.includes(name));
}

export async function checkTools(session) {
  await session.check('tool/test_simple_text', async () => {
    equal(await session.text('test_simple_text'), SIMPLE, 'text');
  });
  await session.check('tool/test_simple_text-empty-arguments', async () => {
    equal(await session.text('test_simple_text', {}), SIMPLE, 'text');
  });
  await session.check('tool/test_image_content', async () => {
    const [block] = (await session.call('test_image_content')).content;
    equal([block.type, block.mimeType], ['image', 'image/png'], 'block');
    expect(block.data, 'no data');
  });
  if (session.revision === '2024-11-05') {
    await session.check('tool/test_audio_content-refused', async () => {
      const result = await session.client.callTool({ name: 'test_audio_content' }).catch((error) => {
        if (!(error instanceof ProtocolError)) throw error;
        return { content: [] };
      });
      expect(result.content.every((block) => block.type !== 'audio'), 'audio does not exist in this revision');
    });
  } else {
    await session.check('tool/test_audio_content', async () => {
      const [block] = (await session.call('test_audio_content')).content;
      equal([block.type, block.mimeType], ['audio', 'audio/wav'], 'block');
      expect(block.data, 'no data');
    });
  }
  await session.check('tool/test_embedded_resource', async () => {
    const [{ resource }] = (await session.call('test_embedded_resource')).content;
    equal(resource.uri, 'test://embedded-resource', 'uri');
    equal(resource.mimeType, 'text/plain', 'mimeType');
    equal(resource.text, 'This is an embedded resource content.', 'text');
  });
  await session.check('tool/test_multiple_content_types', async () => {
    const { content } = await session.call('test_multiple_content_types');
    equal(content.map((block) => block.type), ['text', 'image', 'resource'], 'kinds of content');
    equal(content[2].resource.uri, 'test://mixed-content-resource', 'uri');
  });
  await session.check('tool/test_error_handling', async () => {
    const result = await session.client.callTool({ name: 'test_error_handling' });
    expect(result.isError && textOf(result), 'expected isError and a text');
  });
  await session.check('tool/json_schema_2020_12_tool', async () => {
    const args = { name: 'interop', address: { street: 'a', city: 'b' }, contactMethod: 'phone', phone: '1' };
    expect(await session.text('json_schema_2020_12_tool', args), 'no text');
  });
  if (session.revision >= '2025-11-25') {
    await session.check('tool/json_schema_2020_12_tool-schema', async () => {
      const { inputSchema: schema } = session.tools.find((tool) => tool.name === 'json_schema_2020_12_tool');
      equal(schema.$schema, 'https://json-schema.org/draft/2020-12/schema', '$schema');
      equal(schema.$defs.address.$anchor, 'addressDef', '$anchor');
      equal(schema.properties.address, { $ref: '#/$defs/address' }, '$ref');
      equal(schema.additionalProperties, false, 'additionalProperties');
      for (const keyword of ['allOf', 'if', 'then', 'else']) expect(keyword in schema, `${keyword} was lost`);
    });
  } else {
    session.notAvailable('tool/json_schema_2020_12_tool-schema', 'this dialect is the default since 2025-11-25');
  }
  await session.check('tool/unknown', async () => {
    await refusal(session.client.callTool({ name: 'no_such_tool' }), INVALID_PARAMS);
  });
  await session.check('tool/concurrent-calls', async () => {
    const done = [];
    const slow = session.text('test_slow', { seconds: 1 }).then(() => done.push('slow'));
    const quick = Array.from({ length: 5 }, () => session.text('test_simple_text').then(() => done.push('quick')));
    await Promise.all([slow, ...quick]);
    equal(done, ['quick', 'quick', 'quick', 'quick', 'quick', 'slow'], 'order of the answers');
  });
}

/** Tools that ask in every era from one source: what comes of it is the same, only the way of the questions differs. */
export async function checkAsking(session) {
  const { client, host, wire } = session;
  const [elicit, sample] = ['elicitation/create', 'sampling/createMessage'];
  /** `rounds` has the questions by key, as the modern era groups them. */
  const ask = async (params, rounds) => {
    host.elicited.length = 0;
    host.sampled.length = 0;
    const [sent, received] = [wire.sent.length, wire.received.length];
    const result = await client.callTool(params);
    const news = wire.received.slice(received);
    const asked = news.filter((m) => 'method' in m && 'id' in m).map((m) => m.method);
    const interim = news.filter((m) => m.result?.inputRequests).map((m) => m.result);
    const calls = wire.sent.slice(sent).filter((m) => m.method === 'tools/call');
    if (session.era === 'legacy') {
      equal(asked.sort(), rounds.flatMap((one) => Object.values(one)).sort(), 'requests of the server');
      equal([calls.length, interim], [1, []], 'calls and interim results');
    } else {
      const methods = (one) => Object.entries(one).map(([key, question]) => [key, question.method]);
      const shown = interim.map((one) => Object.fromEntries(methods(one.inputRequests)));
      equal([shown, asked], [rounds, []], 'questions and requests of the server');
      const states = calls.map((call) => call.params.requestState);
      equal(states, [undefined, ...interim.map((one) => one.requestState)], 'states that were sent back');
    }
    return result;
  };
  await session.check('ask/one-by-one', async () => {
    const params = { name: 'test_ask_both_eras', arguments: { call: 'one-by-one' } };
    const result = await ask(params, [{ name: elicit }, { colour: elicit }]);
    equal(textOf(result), 'interop-name likes interop-colour; steps taken: 1', 'text');
    const messages = ['What is your name?', 'What is your favourite colour, interop-name?'];
    equal(host.elicited.map((form) => form.message), messages, 'forms that the client got');
  });
  await session.check('ask/two-at-once', async () => {
    const result = await ask({ name: 'test_ask_two_at_once' }, [{ name: elicit, greeting: sample }]);
    equal(textOf(result), `interop-name: ${SAMPLED}`, 'text');
    equal([host.elicited.length, host.sampled.length], [1, 1], 'questions that the client got');
  });
  for (const [action, why] of Object.entries({ decline: 'the user declined', cancel: 'the user cancelled' })) {
    await session.check(`ask/${action}`, async () => {
      host.action = action;
      const params = { name: 'test_ask_both_eras', arguments: { call: action } };
      const result = await ask(params, [{ name: elicit }]).finally(() => (host.action = 'accept'));
      equal([result.isError, textOf(result)], [true, why], 'result');
    });
  }
}

export async function checkPrompts(session) {
  const { client } = session;
  await session.check('prompt/test_simple_prompt', async () => {
    const { messages } = await client.getPrompt({ name: 'test_simple_prompt' });
    expect(messages[0]?.content.text, 'no text');
  });
  await session.check('prompt/test_prompt_with_arguments', async () => {
    const { messages } = await client.getPrompt({
      name: 'test_prompt_with_arguments',
      arguments: { arg1: 'first-value', arg2: 'second-value' },
    });
    const text = messages.map((message) => message.content.text).join(' ');
    expect(text.includes('first-value') && text.includes('second-value'), `an argument is missing in "${text}"`);
  });
  await session.check('prompt/test_prompt_with_embedded_resource', async () => {
    const { messages } = await client.getPrompt({
      name: 'test_prompt_with_embedded_resource',
      arguments: { resourceUri: 'test://example-resource' },
    });
    const blocks = messages.map((message) => message.content).filter((block) => block.type === 'resource');
    equal(blocks.map((block) => block.resource.uri), ['test://example-resource'], 'embedded resources');
  });
  await session.check('prompt/test_prompt_with_image', async () => {
    const { messages } = await client.getPrompt({ name: 'test_prompt_with_image' });
    const images = messages.map((message) => message.content).filter((block) => block.type === 'image');
    equal(images.map((image) => image.mimeType), ['image/png'], 'images');
  });
  await session.check('prompt/unknown', async () => {
    await refusal(client.getPrompt({ name: 'no_such_prompt' }), INVALID_PARAMS);
  });
}

export async function checkResources(session) {
  const { client } = session;
  const read = async (uri) => {
    const { contents } = await client.readResource({ uri }, { cacheMode: 'bypass' });
    equal(contents.map((one) => one.uri), [uri], 'uri');
    return contents[0];
  };
  await session.check('resource/static-text', async () => {
    const contents = await read('test://static-text');
    equal(contents.mimeType, 'text/plain', 'mimeType');
    expect(contents.text, 'no text');
  });
  await session.check('resource/static-binary', async () => {
    const contents = await read('test://static-binary');
    equal(contents.mimeType, 'image/png', 'mimeType');
    expect(contents.blob, 'no blob');
  });
  await session.check('resource/template', async () => {
    const contents = await read('test://template/interop-42/data');
    expect(contents.text.includes('interop-42'), 'the id is not in the text');
  });
  await session.check('resource/watched', () => read(WATCHED));
  await session.check('resource/unknown', async () => {
    const code = session.era === 'modern' ? INVALID_PARAMS : -32002;
    const error = await refusal(client.readResource({ uri: 'test://no-such-resource' }));
    // The package turns the older code into the newer one, so the code is read from the wire.
    const [answer] = session.wire.answers(session.wire.lastRequest('resources/read').id);
    equal(answer.error.code, code, 'code');
    if (session.era === 'modern') equal(error.data?.uri, 'test://no-such-resource', 'data.uri');
  });
}

export async function checkCompletion(session) {
  await session.check('completion', async () => {
    const { completion } = await session.client.complete({
      ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
      argument: { name: 'arg1', value: 'test' },
    });
    expect(completion.values.length <= 100, 'more than 100 values');
  });
}

/**
 * The package answers a call at once but passes on notifications a moment later, so the last progress is lost
 * (and complained of) if it comes in one read with the result. What the server sent is therefore read from the wire.
 */
export async function checkProgress(session) {
  const { wire } = session;
  const seen = [];
  const onprogress = (progress) => seen.push([progress.progress, progress.total]);
  await session.check('progress/test_tool_with_progress', async () => {
    const mark = wire.received.length;
    await session.call('test_tool_with_progress', undefined, { onprogress });
    const sent = wire.notifications('notifications/progress', mark).map(({ params }) => [params.progress, params.total]);
    equal(sent, [[0, 100], [50, 100], [100, 100]], 'progress');
    equal(seen.slice(0, 2), sent.slice(0, 2), 'progress that the caller saw');
    const token = wire.lastRequest('tools/call').params._meta.progressToken;
    const tokens = wire.notifications('notifications/progress', mark).map(({ params }) => params.progressToken);
    equal(tokens, [token, token, token], 'tokens');
  });
  await session.check('progress/monotonic', async () => {
    seen.length = 0;
    await session.call('test_slow', { seconds: 0.5 }, { onprogress });
    expect(seen.length >= 3, `expected at least 3 notifications, got ${seen.length}`);
    const values = seen.map(([progress]) => progress);
    expect(values.every((value, i) => i === 0 || value > values[i - 1]), `not increasing: ${values}`);
  });
  await session.check('progress/only-if-asked', async () => {
    const mark = wire.received.length;
    await session.call('test_tool_with_progress');
    equal(wire.notifications('notifications/progress', mark), [], 'notifications');
  });
}

export async function checkCancellation(session) {
  const { wire } = session;
  await session.check('cancellation/stops-the-tool', async () => {
    const seen = [];
    const stop = new AbortController();
    const call = session
      .call('test_slow', { seconds: 60 }, { onprogress: (progress) => seen.push(progress), signal: stop.signal })
      .then(() => 'answered', () => 'given up');
    await until(() => seen.length >= 2);
    const { id } = wire.lastRequest('tools/call', 'test_slow');
    stop.abort('the user changed their mind');
    equal(await call, 'given up', 'call');
    await until(() => wire.cancelled(id));
    await sleep(QUIET); // what was under way may still arrive
    const mark = wire.received.length;
    await sleep(QUIET);
    equal(wire.notifications('notifications/progress', mark), [], 'progress after the cancellation');
    equal(wire.answers(id), [], 'answers to the cancelled request');
    await checkNothingUnderWay(session);
  });
  await session.check('cancellation/session-still-works', async () => {
    equal(await session.text('test_simple_text'), SIMPLE, 'text');
  });
}

/**
 * Slow calls that were given up have ended, here or on other connections to the same server; a moment later at most.
 * The check around it limits how long.
 */
export async function checkNothingUnderWay(session) {
  const end = Date.now() + WAIT;
  while (Date.now() < end) {
    if ((await session.text('test_slow', { seconds: 0 })).endsWith('others under way: 0')) return;
    await sleep(50);
  }
  expect(false, 'slow calls are still under way');
}

export async function checkComplaints(session) {
  await session.check('client-complains-of-nothing', () => {
    const late = 'Received a progress notification for an unknown token'; // see checkProgress
    equal(session.wire.complaints.filter((complaint) => !complaint.startsWith(late)), [], 'complaints');
  });
}

/** To be called before the connection is closed, and after everything else. */
export async function checkWire(session) {
  const { wire } = session;
  if (wire.isHttp) await checkHttp(session);
  else await session.check('stdout-has-only-messages', () => equal(wire.faults, [], 'other lines'));
}

async function checkHttp(session) {
  const { exchanges } = session.wire;
  const different = (values) => [...new Set(values)].sort();
  const hasSession = session.era === 'legacy' && !session.wire.isStateless;
  await session.check(hasSession ? 'http/session' : 'http/no-session', () => {
    const ids = exchanges.flatMap(({ asked, told }) => [asked, told].map((headers) => headers.get('mcp-session-id')));
    equal(different(ids.filter((id) => id !== null)).length, hasSession ? 1 : 0, 'ids of sessions');
  });
  const posts = () => exchanges.filter(({ verb }) => verb === 'POST');
  await session.check('http/statuses', async () => {
    const notifications = session.wire.sent.filter((m) => 'method' in m && !('id' in m)).map((m) => m.method);
    await until(() => posts().filter(({ status }) => status === 202).length >= notifications.length);
    const expected = session.era === 'modern' ? [200, 202, 400] : [200, 202];
    equal(different(posts().map(({ status }) => status)), expected, 'statuses');
    // The package posts the end of a listening beside closing its response.
    if (session.era === 'modern') equal(different(notifications), ['notifications/cancelled'], 'notifications');
  });
  await session.check(hasSession ? 'http/stream-beside-requests' : 'http/no-stream-beside-requests', () => {
    // The package asks for one after the handshake, as it may, and once more for what it missed.
    const others = exchanges.filter(({ verb }) => verb !== 'POST').map(({ verb, status }) => [verb, status]);
    const expected = session.era === 'modern' ? [] : [['GET', hasSession ? 200 : 405]];
    equal(hasSession ? others.slice(0, 1) : others, expected, 'other verbs');
  });
  await session.check('http/media-types', () => {
    const types = posts().filter(({ status }) => status === 200).map(({ type }) => type);
    equal(different(types), ['application/json', 'text/event-stream'], 'types');
  });
  await session.check('http/versions', () => {
    const asked = session.era === 'legacy' ? exchanges.slice(1) : exchanges;
    const versions = different(asked.map(({ asked }) => asked.get('mcp-protocol-version')));
    equal(versions.filter((version) => version !== '2099-01-01'), [session.revision], 'versions in headers');
  });
}

/** To be called when the connection is closed. */
export async function checkWireClosed(session) {
  const { wire } = session;
  if (wire.isHttp) return;
  await session.check('exit-at-end-of-input', async () => {
    await until(() => wire.server.exitCode !== null || wire.server.signalCode !== null);
    equal(wire.server.signalCode, null, 'signal that ended the server');
  });
}
