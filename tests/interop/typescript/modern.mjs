// The revision in which every request stands for itself: 2026-07-28.

import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { ROOTS, SAMPLED, filled } from './host.mjs';
import { NotAvailable, describe, equal, expect, sleep, until } from './report.mjs';
import {
  CONNECT_WAIT,
  EVERYTHING,
  QUIET,
  WATCHED,
  checkAsking,
  checkCancellation,
  checkComplaints,
  checkCompletion,
  checkLists,
  checkProgress,
  checkPrompts,
  checkResources,
  checkTools,
  checkWire,
  checkWireClosed,
  connected,
  refusal,
} from './session.mjs';
import { SUBSCRIPTION_ID } from './wire.mjs';

export const REVISION = '2026-07-28';
const PREFIX = 'test_input_required_result_';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
const TOOLS = 'notifications/tools/list_changed';
const PROMPTS = 'notifications/prompts/list_changed';
const RESOURCES = 'notifications/resources/list_changed';
const UPDATED = 'notifications/resources/updated';

const negotiation = (mode) => ({ versionNegotiation: { mode, probe: { timeoutMs: CONNECT_WAIT } } });

export async function drive(report, server) {
  let discovered;
  try {
    const how = { options: negotiation('auto'), inPlace: true };
    const session = await connected(report, server, REVISION, 'modern', how, async (session) => {
      discovered = session.client.getDiscoverResult();
      await checkDiscover(session);
      await checkLists(session);
      await checkTools(session);
      await checkModernTools(session);
      await checkPrompts(session);
      await checkResources(session);
      await checkCompletion(session);
      await checkProgress(session);
      await checkLogging(session);
      await checkInput(session);
      await checkAsking(session);
      await checkListen(session);
      await checkRemovedMethods(session);
      await session.check('no-requests-of-the-server', () => {
        equal(session.wire.requestsOfServer(), [], 'requests of the server');
      });
      await checkComplaints(session);
      await checkCancellation(session);
      if (session.wire.isHttp) {
        await session.check('cancellation/by-closing', () => {
          const slow = session.wire.sent.filter((m) => m.params?.name === 'test_slow' && m.params.arguments.seconds === 60);
          equal(slow.map(({ id }) => session.wire.closed(id)), [true], 'whether the response was closed');
        });
      }
      await checkWire(session);
    });
    await checkWireClosed(session);
  } catch (error) {
    report.fail(`${REVISION}/connection`, describe(error));
  }
  await checkWaysToConnect(report, server, discovered);
  await checkFewCapabilities(report, server);
  for (const name of ['discover-then-initialize', 'refused-probe-then-initialize']) {
    report.notAvailable(`both-eras/${name}`, 'the package sends no initialize to a server that knows the newer revision');
  }
}

async function checkDiscover(session) {
  const { client, wire } = session;
  await session.check('discover', () => {
    equal(wire.sent[0].method, 'server/discover', 'first message');
    expect(wire.sent.every((m) => m.method !== 'initialize'), 'the client fell back to initialize');
    equal(client.getNegotiatedProtocolVersion(), REVISION, 'version');
    expect(client.getDiscoverResult().supportedVersions.includes(REVISION), 'supportedVersions');
    const server = client.getServerVersion();
    expect(server?.name && server?.version, 'no serverInfo');
  });
  await session.check('discover-capabilities', () => {
    const offered = client.getServerCapabilities();
    for (const kind of ['tools', 'prompts', 'resources']) {
      expect(offered[kind]?.listChanged, `${kind}.listChanged is not declared`);
    }
    expect(offered.resources.subscribe, 'resources.subscribe is not declared');
    expect(offered.completions, 'completions is not declared');
  });
  await session.check('discover-cache-hints', () => {
    const { result } = wire.answers(wire.sent[0].id)[0];
    expect(Number.isInteger(result.ttlMs) && result.ttlMs >= 0, 'ttlMs');
    expect(['public', 'private'].includes(result.cacheScope), 'cacheScope');
    equal(result.resultType, 'complete', 'resultType');
  });
  await session.check('discover-again', async () => {
    expect((await client.discover()).supportedVersions.includes(REVISION), 'supportedVersions');
  });
  await session.check('discover-unsupported-version', async () => {
    const params = { _meta: { [PROTOCOL_VERSION]: '2099-01-01' } };
    const error = await refusal(client.request({ method: 'server/discover', params }), -32022);
    equal(error.data?.requested, '2099-01-01', 'data.requested');
    expect(error.data?.supported?.includes(REVISION), 'data.supported');
  });
}

async function checkModernTools(session) {
  await session.check('tool/test_custom_header', async () => {
    const text = await session.text('test_custom_header', { value: 'interop-value' });
    expect(text.includes('interop-value'), `the value is not in "${text}"`);
    if (session.wire.isHttp) {
      const { asked } = session.wire.lastExchange('test_custom_header');
      equal(asked.get('mcp-param-value'), 'interop-value', 'header');
    }
  });
  await session.check('tool/test_missing_capability', async () => {
    expect(await session.text('test_missing_capability'), 'no text');
  });
  await session.check('tool/test_streaming_elicitation', () => session.call('test_streaming_elicitation'));
  await session.check('every-result-has-a-resultType', () => {
    equal(session.wire.received.filter((m) => m.result && !('resultType' in m.result)), [], 'results without it');
  });
}

async function checkLogging(session) {
  const { host, wire } = session;
  const notified = 'notifications/message';
  await session.check('logging/only-if-asked', async () => {
    const mark = wire.received.length;
    await session.call('test_logging_tool');
    await session.call('test_tool_with_logging');
    await sleep(QUIET);
    equal(wire.notifications(notified, mark), [], 'messages without logLevel');
  });
  await session.check('logging/messages-arrive', async () => {
    host.logged.length = 0;
    await session.call('test_tool_with_logging', undefined, { meta: { [LOG_LEVEL]: 'debug' } });
    await until(() => host.logged.length >= 3);
  });
  await session.check('logging/level-is-respected', async () => {
    const mark = wire.received.length;
    await session.call('test_tool_with_logging', undefined, { meta: { [LOG_LEVEL]: 'error' } });
    await sleep(QUIET);
    equal(wire.notifications(notified, mark), [], 'messages below the level');
  });
}

/** Results that ask for input first; the client answers by its handlers and calls again. */
async function checkInput(session) {
  const { client, host, wire } = session;
  const manual = { allowInputRequired: true };
  await session.check('input/elicitation', async () => {
    host.elicited.length = 0;
    const text = await session.text(`${PREFIX}elicitation`);
    equal(host.elicited.length, 1, 'forms that the client got');
    for (const value of Object.values(filled(host.elicited[0].requestedSchema))) {
      expect(text.includes(String(value)), `${value} is not in "${text}"`);
    }
  });
  await session.check('input/sampling', async () => {
    const text = await session.text(`${PREFIX}sampling`);
    expect(host.sampled.length > 0, 'the client was not asked');
    expect(text.includes(SAMPLED), `the answer is not in "${text}"`);
  });
  await session.check('input/roots', async () => {
    const text = await session.text(`${PREFIX}list_roots`);
    equal(host.rootsListed, 1, 'requests that the client got');
    for (const uri of ROOTS) expect(text.includes(uri), `${uri} is not in "${text}"`);
  });
  await session.check('input/request-state', async () => {
    expect(await session.text(`${PREFIX}request_state`), 'no text');
    expect(wire.lastRequest('tools/call').params.requestState, 'no requestState was sent back');
  });
  await session.check('input/multiple', async () => {
    const counts = () => [host.elicited.length, host.sampled.length, host.rootsListed];
    const before = counts();
    expect(await session.text(`${PREFIX}multiple_inputs`), 'no text');
    expect(counts().every((count, i) => count > before[i]), `${before} became ${counts()}`);
  });
  await session.check('input/multi-round', async () => {
    const mark = wire.sent.length;
    expect(await session.text(`${PREFIX}multi_round`), 'no text');
    const calls = wire.sent.slice(mark).filter((m) => m.method === 'tools/call');
    equal(calls.length, 3, 'calls');
    const [first, second, third] = calls.map((m) => m.params.requestState);
    expect(first === undefined && second && third && second !== third, `states: ${[first, second, third]}`);
  });
  await session.check('input/prompt', async () => {
    const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' });
    expect(messages.length > 0, 'no messages');
  });
  await session.check('input/asks-again', async () => {
    const name = `${PREFIX}elicitation`;
    const first = await client.callTool({ name }, manual);
    equal(first.resultType, 'input_required', 'resultType');
    equal(Object.keys(first.inputRequests), ['user_name'], 'keys');
    const inputResponses = { other: { action: 'accept', content: { name: 'x' } } };
    const again = await client.callTool({ name, inputResponses, ...state(first) }, manual);
    equal(again.resultType, 'input_required', 'resultType after an unknown key');
  });
  await session.check('input/tampered-state', async () => {
    const name = `${PREFIX}tampered_state`;
    const first = await client.callTool({ name }, manual);
    expect(first.requestState, 'no requestState');
    const [key] = Object.keys(first.inputRequests);
    const inputResponses = { [key]: { action: 'accept', content: { ok: true } } };
    const requestState = `${first.requestState}-TAMPERED`;
    await refusal(client.callTool({ name, inputResponses, requestState }, manual));
  });
}

const state = ({ requestState }) => (requestState === undefined ? {} : { requestState });

async function checkListen(session) {
  const { client, host, wire } = session;
  const every = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: [WATCHED],
  };
  const changes = (since) =>
    wire.received.slice(since).filter((m) => [TOOLS, PROMPTS, RESOURCES, UPDATED].includes(m.method));
  const ids = (since) => changes(since).map((m) => m.params._meta[SUBSCRIPTION_ID]).sort();
  const listening = async (filter, body) => {
    const subscription = await client.listen(filter, { timeout: CONNECT_WAIT });
    const { id } = wire.lastRequest('subscriptions/listen');
    host.changed.length = 0;
    try {
      await body(subscription, id, wire.received.length);
    } finally {
      await subscription.close();
    }
    return id;
  };
  await session.check('listen/nothing-unasked', async () => {
    const mark = wire.received.length;
    await session.call('test_trigger_changes');
    await sleep(QUIET);
    equal(changes(mark), [], 'changes that nobody listens to');
  });
  await session.check('listen/acknowledged', () =>
    listening(every, ({ honoredFilter }) => equal(honoredFilter, every, 'acknowledged filter')),
  );
  const triggers = {
    tools: ['test_trigger_tool_change', [TOOLS]],
    prompts: ['test_trigger_prompt_change', [PROMPTS]],
    all: ['test_trigger_changes', [PROMPTS, RESOURCES, `${UPDATED} ${WATCHED}`, TOOLS]],
  };
  for (const [name, [tool, expected]] of Object.entries(triggers)) {
    await session.check(`listen/changes-${name}`, () =>
      listening(every, async (_, id, mark) => {
        await session.call(tool);
        await until(() => host.changed.length >= expected.length);
        await sleep(QUIET);
        equal([...host.changed].sort(), expected, 'changes');
        equal([...new Set(ids(mark))], [id], 'subscription ids');
      }),
    );
  }
  await session.check('listen/filter', () =>
    listening({ promptsListChanged: true }, async ({ honoredFilter }, _, mark) => {
      expect(!honoredFilter.toolsListChanged, 'tools acknowledged unasked');
      await session.call('test_trigger_changes');
      await until(() => host.changed.includes(PROMPTS));
      await sleep(QUIET);
      equal(changes(mark).map((m) => m.method), [PROMPTS], 'changes');
    }),
  );
  await session.check('listen/other-resource', () =>
    listening({ resourceSubscriptions: ['test://static-text'] }, async (_, __, mark) => {
      await session.call('test_trigger_changes');
      await sleep(QUIET);
      equal(changes(mark), [], 'changes');
    }),
  );
  await session.check('listen/two-streams', () =>
    listening({ toolsListChanged: true }, (_, one) =>
      listening({ toolsListChanged: true }, async (__, two, mark) => {
        await session.call('test_trigger_tool_change');
        await until(() => host.changed.length >= 2);
        equal(ids(mark), [one, two].sort(), 'subscription ids');
      }),
    ),
  );
  await session.check('listen/ends', async () => {
    const id = await listening({ toolsListChanged: true }, () => {});
    await until(() => wire.cancelled(id));
    if (wire.isHttp) expect(wire.closed(id), 'the response was not closed');
    await sleep(QUIET);
    const mark = wire.received.length;
    await session.call('test_trigger_tool_change');
    await sleep(QUIET);
    equal(changes(mark), [], 'changes after the end');
  });
}

async function checkRemovedMethods(session) {
  const { client } = session;
  const requests = {
    ping: () => client.ping(),
    'logging/setLevel': () => client.setLoggingLevel('info'),
    'resources/subscribe': () => client.subscribeResource({ uri: WATCHED }),
    'resources/unsubscribe': () => client.unsubscribeResource({ uri: WATCHED }),
  };
  for (const [method, request] of Object.entries(requests)) {
    await session.check(`removed/${method}`, async () => {
      const sent = request().catch((error) => {
        if (error instanceof SdkError && error.code === SdkErrorCode.MethodNotSupportedByProtocolVersion) {
          throw new NotAvailable('the package does not send it in this revision');
        }
        throw error;
      });
      await refusal(sent, -32601);
    });
  }
}

/** The ways to find out what a server speaks, other than to ask it on the pipe in use. */
async function checkWaysToConnect(report, server, discovered) {
  const call = async (session) => expect(await session.text('test_simple_text'), 'no text');
  const check = (name, how, body) =>
    report.check(
      `${REVISION}/${name}`,
      () =>
        connected(report, server, REVISION, 'modern', how, async (session) => {
          equal(session.client.getNegotiatedProtocolVersion(), REVISION, 'version');
          await body(session);
        }),
      CONNECT_WAIT,
    );
  if (!server.url) {
    await check('probe-by-another-process', { options: negotiation('auto') }, async (session) => {
      equal(session.wire.sent, [], 'messages before the first call');
      await call(session);
    });
  }
  await check('pinned', { options: negotiation({ pin: REVISION }), inPlace: true }, call);
  const prior = { kind: 'modern', discover: discovered };
  await check('without-discover', { connect: { prior } }, async (session) => {
    await call(session);
    equal(session.wire.sent[0].method, 'tools/call', 'first message');
  });
}

async function checkFewCapabilities(report, server) {
  const how = (capabilities) => ({ options: negotiation({ pin: REVISION }), inPlace: true, capabilities });
  try {
    await connected(report, server, REVISION, 'modern', how({}), async (session) => {
      await session.check('without-capability', async () => {
        const error = await refusal(session.client.callTool({ name: 'test_missing_capability' }), -32021);
        equal(error.data, { requiredCapabilities: { sampling: {} } }, 'data');
      });
    });
    const { sampling } = EVERYTHING;
    await connected(report, server, REVISION, 'modern', how({ sampling }), async (session) => {
      await session.check('input/only-what-the-client-can', async () => {
        const name = `${PREFIX}capabilities`;
        const result = await session.client.callTool({ name }, { allowInputRequired: true });
        equal(result.resultType, 'input_required', 'resultType');
        const methods = Object.values(result.inputRequests).map((request) => request.method);
        equal([...new Set(methods)], ['sampling/createMessage'], 'requests');
      });
    });
  } catch (error) {
    report.fail(`${REVISION}/few-capabilities`, describe(error));
  }
}
