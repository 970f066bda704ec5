// The revisions that open with a handshake: 2024-11-05 to 2025-11-25.

import { ProtocolError } from '@modelcontextprotocol/client';
import { ROOTS, SAMPLED, filled } from './host.mjs';
import { describe, equal, expect, sleep, until } from './report.mjs';
import {
  CONNECT_WAIT,
  QUIET,
  WATCHED,
  checkAsking,
  checkCancellation,
  checkComplaints,
  checkCompletion,
  checkLists,
  checkNothingUnderWay,
  checkProgress,
  checkPrompts,
  checkResources,
  checkTools,
  checkWire,
  checkWireClosed,
  connected,
  textOf,
} from './session.mjs';
import { checkStateless, checkStatelessCancellation } from './stateless.mjs';

export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

export async function drive(report, server, revision) {
  // The client offers the first version of its list, and takes only what is in it.
  const options = { supportedProtocolVersions: [revision] };
  try {
    const session = await connected(report, server, revision, 'legacy', { options }, async (session) => {
      await checkHandshake(session);
      await checkLists(session);
      await checkTools(session);
      await session.check('tool/test_reconnection', async () => {
        expect(await session.text('test_reconnection'), 'no text');
      });
      await checkPrompts(session);
      await checkResources(session);
      await checkCompletion(session);
      await checkProgress(session);
      await (session.wire.isStateless ? checkStateless : checkInSession)(session);
      await checkComplaints(session);
      await (session.wire.isStateless ? checkStatelessCancellation : checkCancellation)(session);
      await checkWire(session);
    });
    await checkWireClosed(session);
  } catch (error) {
    report.fail(`${revision}/connection`, describe(error));
  }
  await checkWithoutCapabilities(report, server, revision, options);
  if (revision === '2025-03-26') {
    report.notAvailable(`${revision}/batch`, 'the package neither sends nor reads batches');
  }
}

/** What needs a server that remembers the client. */
async function checkInSession(session) {
  await checkLogging(session);
  await checkSampling(session);
  await checkElicitation(session);
  await checkRoots(session);
  if (session.revision >= '2025-06-18') await checkAsking(session);
  await checkListChanged(session);
  await checkSubscriptions(session);
}

async function checkHandshake(session) {
  const { client, wire } = session;
  await session.check('initialize', () => {
    equal(wire.sent[0].params.protocolVersion, session.revision, 'offered version');
    equal(client.getNegotiatedProtocolVersion(), session.revision, 'negotiated version');
    const server = client.getServerVersion();
    expect(server?.name && server?.version, 'no serverInfo');
  });
  await session.check('initialize-capabilities', () => {
    const offered = client.getServerCapabilities();
    const tells = !wire.isStateless; // nothing can be told to a client that is forgotten at once
    for (const kind of ['tools', 'prompts', 'resources']) {
      expect(offered[kind], `${kind} is not declared`);
      equal(offered[kind].listChanged === true, tells, `${kind}.listChanged`);
    }
    equal(offered.resources.subscribe === true, tells, 'resources.subscribe');
    equal(offered.logging !== undefined, tells, 'logging');
    if (session.revision >= '2025-03-26') expect(offered.completions, 'completions is not declared');
  });
  await session.check('ping', async () => {
    await client.ping();
    equal(wire.answers(wire.lastRequest('ping').id)[0].result, {}, 'result');
  });
}

async function checkLogging(session) {
  const { client, host } = session;
  await session.check('logging/messages-arrive', async () => {
    await client.setLoggingLevel('debug');
    host.logged.length = 0;
    await session.call('test_tool_with_logging');
    await until(() => host.logged.length >= 3);
    equal([...new Set(host.logged.map((entry) => entry.level))], ['info'], 'levels');
  });
  await session.check('logging/level-is-respected', async () => {
    await client.setLoggingLevel('error');
    host.logged.length = 0;
    await session.call('test_tool_with_logging');
    await sleep(QUIET);
    equal(host.logged.length, 0, 'messages below the level');
  });
}

async function checkSampling(session) {
  await session.check('sampling', async () => {
    const text = await session.text('test_sampling', { prompt: 'interop prompt' });
    equal(session.host.sampled.length, 1, 'requests that the client got');
    const [params] = session.host.sampled;
    equal(params.messages[0].content.text, 'interop prompt', 'prompt that the client got');
    equal(params.maxTokens, 100, 'maxTokens');
    expect(text.includes(SAMPLED), `the answer is not in "${text}"`);
  });
}

async function checkElicitation(session) {
  const { host, revision } = session;
  if (revision < '2025-06-18') {
    for (const tool of ['test_elicitation', 'test_elicitation_sep1034_defaults', 'test_elicitation_sep1330_enums']) {
      await session.check(`elicitation/${tool}-refused`, async () => {
        await expectFailure(session, tool, tool === 'test_elicitation' ? { message: 'interop' } : undefined);
        equal(session.wire.requestsOfServer('elicitation/create'), [], 'elicitations in this revision');
      });
    }
    return;
  }
  const only = () => {
    equal(host.elicited.length, 1, 'forms that the client got');
    return host.elicited[0];
  };
  for (const action of ['accept', 'decline', 'cancel']) {
    await session.check(`elicitation/${action}`, async () => {
      host.action = action;
      host.elicited.length = 0;
      const text = await session.text('test_elicitation', { message: 'interop message' });
      const { message, requestedSchema } = only();
      equal(message, 'interop message', 'message that the client got');
      equal(Object.keys(requestedSchema.properties).sort(), ['email', 'username'], 'fields');
      equal([...requestedSchema.required].sort(), ['email', 'username'], 'required fields');
      expect(text.includes(action), `the action is not in "${text}"`);
      if (action === 'accept') {
        for (const value of Object.values(filled(requestedSchema))) {
          expect(text.includes(value), `${value} is not in "${text}"`);
        }
      }
    });
  }
  host.action = 'accept';
  await session.check('elicitation/defaults', async () => {
    host.elicited.length = 0;
    await session.call('test_elicitation_sep1034_defaults');
    const fields = only().requestedSchema.properties;
    let defaults = { age: 30, name: 'John Doe', score: 95.5, status: 'active', verified: true };
    equal(Object.keys(fields).sort(), Object.keys(defaults), 'fields');
    if (revision === '2025-06-18') defaults = { verified: true }; // only booleans have defaults there
    for (const [name, value] of Object.entries(defaults)) equal(fields[name].default, value, `default of ${name}`);
  });
  if (revision === '2025-06-18') {
    await session.check('elicitation/enums-refused-or-cut', async () => {
      host.elicited.length = 0;
      await session.client.callTool({ name: 'test_elicitation_sep1330_enums' }).catch((error) => {
        if (!(error instanceof ProtocolError)) throw error;
      });
      for (const { params } of session.wire.requestsOfServer('elicitation/create')) {
        const kinds = Object.values(params.requestedSchema.properties).map((field) => field.type);
        expect(!kinds.includes('array'), 'lists do not exist in forms of this revision');
      }
    });
    return;
  }
  await session.check('elicitation/enums', async () => {
    host.elicited.length = 0;
    const text = await session.text('test_elicitation_sep1330_enums');
    const fields = only().requestedSchema.properties;
    const { untitledSingle, titledSingle, legacyEnum, untitledMulti, titledMulti } = fields;
    expect(untitledSingle.enum && !untitledSingle.oneOf && !untitledSingle.enumNames, 'untitledSingle');
    expect(titledSingle.oneOf[0].const && titledSingle.oneOf[0].title && !titledSingle.enum, 'titledSingle');
    equal(legacyEnum.enumNames.length, legacyEnum.enum.length, 'length of enumNames');
    expect(untitledMulti.items.enum, 'untitledMulti');
    expect(titledMulti.items.anyOf[0].const && titledMulti.items.anyOf[0].title, 'titledMulti');
    expect(text.includes('accept'), `the action is not in "${text}"`);
  });
}

async function checkRoots(session) {
  await session.check('roots', async () => {
    const text = await session.text('test_list_roots');
    equal(session.host.rootsListed, 1, 'requests that the client got');
    for (const uri of ROOTS) expect(text.includes(uri), `${uri} is not in "${text}"`);
  });
  await session.check('roots/list-changed-is-taken', async () => {
    await session.client.sendRootsListChanged();
    await session.call('test_simple_text');
  });
}

async function checkListChanged(session) {
  const { host } = session;
  for (const kind of ['tools', 'prompts', 'resources']) {
    await session.check(`list-changed/${kind}`, async () => {
      host.changed.length = 0;
      await session.call('test_trigger_changes');
      await until(() => host.changed.includes(`notifications/${kind}/list_changed`));
    });
  }
}

async function checkSubscriptions(session) {
  const { client, host, wire } = session;
  const updated = 'notifications/resources/updated';
  await session.check('subscribe/nothing-before', () => {
    equal(wire.notifications(updated), [], 'updates without a subscription');
  });
  await session.check('subscribe', async () => {
    await client.subscribeResource({ uri: WATCHED });
    host.changed.length = 0;
    await session.call('test_trigger_changes');
    await until(() => host.changed.includes(`${updated} ${WATCHED}`));
  });
  await session.check('unsubscribe', async () => {
    await client.unsubscribeResource({ uri: WATCHED });
    host.changed.length = 0;
    const mark = wire.received.length;
    await session.call('test_trigger_changes');
    await until(() => host.changed.includes('notifications/tools/list_changed'));
    await sleep(QUIET);
    equal(wire.notifications(updated, mark), [], 'updates after the end of the subscription');
  });
}

/** A client that declares nothing must not be asked anything. This is a connection after the one with all checks. */
async function checkWithoutCapabilities(report, server, revision, options) {
  const calls = {
    sampling: ['sampling/createMessage', 'test_sampling', { prompt: 'x' }],
    roots: ['roots/list', 'test_list_roots', undefined],
  };
  if (revision >= '2025-06-18') calls.elicitation = ['elicitation/create', 'test_elicitation', { message: 'x' }];
  try {
    await connected(report, server, revision, 'legacy', { options, capabilities: {} }, async (session) => {
      for (const [capability, [method, tool, args]] of Object.entries(calls)) {
        await session.check(`without-capability/${capability}`, async () => {
          await expectFailure(session, tool, args);
          equal(session.wire.requestsOfServer(method), [], 'requests of the server');
        });
      }
      if (session.wire.isStateless) await session.check('cancellation/by-closing', () => checkNothingUnderWay(session));
    });
  } catch (error) {
    report.fail(`${revision}/without-capability`, describe(error));
  }
}

export async function checkCounterOffer(report, server) {
  const newest = REVISIONS.at(-1);
  const options = { supportedProtocolVersions: ['2023-01-01', newest] };
  const check = async () => {
    await connected(report, server, newest, 'legacy', { options }, async ({ client, wire }) => {
      equal(wire.sent[0].params.protocolVersion, '2023-01-01', 'offered version');
      equal(client.getNegotiatedProtocolVersion(), newest, 'version that the server offered instead');
    });
  };
  await report.check('negotiation/unknown-version', check, CONNECT_WAIT);
}

/** Either an error response or a result with isError. */
async function expectFailure(session, name, args) {
  let result;
  try {
    result = await session.client.callTool(args === undefined ? { name } : { name, arguments: args });
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return;
  }
  expect(result.isError, `${name} succeeded: ${textOf(result)}`);
}
