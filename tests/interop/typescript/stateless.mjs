// Handshake revisions over HTTP without sessions: each request is served alone, so the server cannot ask or tell more.

import { ProtocolError } from '@modelcontextprotocol/client';
import { equal, expect, sleep, until } from './report.mjs';
import { QUIET, WATCHED, refusal, textOf } from './session.mjs';

const ASKING = {
  test_sampling: { prompt: 'interop prompt' },
  test_elicitation: { message: 'interop message' },
  test_elicitation_sep1034_defaults: {},
  test_elicitation_sep1330_enums: {},
  test_list_roots: {},
  test_ask_both_eras: { call: 'stateless' },
  test_ask_two_at_once: {},
};

export async function checkStateless(session) {
  const { client, host, wire } = session;
  await session.check('logging/not-sent', async () => {
    host.logged.length = 0;
    await session.call('test_tool_with_logging');
    await sleep(QUIET);
    equal(host.logged.length, 0, 'log messages of a server that does not declare logging');
  });
  // The package sets no level at a server that does not declare logging, so the request is sent past it.
  await session.check('logging/setLevel-is-refused', async () => {
    const error = await refusal(client.request({ method: 'logging/setLevel', params: { level: 'error' } }), -32601);
    expect(error.message.includes('session'), `the remedy, a session, is not in "${error.message}"`);
  });
  session.notAvailable('logging/level-is-respected', 'there is no session to keep a level in');
  for (const [tool, args] of Object.entries(ASKING)) {
    await session.check(`asking-is-refused/${tool}`, async () => {
      const why = await failure(session, tool, args);
      // The remedy, a session, is for the developer of the server, in its log.
      expect(why === 'no request can be sent to the client', `the model reads "${why}"`);
      equal(wire.requestsOfServer(), [], 'requests of the server');
    });
  }
  await session.check('roots/list-changed-is-taken', async () => {
    await client.sendRootsListChanged();
    await session.call('test_simple_text');
  });
  await session.check('list-changed/not-told', async () => {
    const mark = wire.received.length;
    await session.call('test_trigger_changes');
    await sleep(QUIET);
    equal(wire.received.slice(mark).filter((m) => 'method' in m), [], 'messages beside the answer');
  });
  // The package sends no subscriptions to a server that does not declare them, so they are sent past it.
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
    await session.check(`${method.slice(10)}-is-refused`, async () => {
      const error = await refusal(client.request({ method, params: { uri: WATCHED } }), -32601);
      expect(error.message.includes('session'), `the remedy, a session, is not in "${error.message}"`);
    });
  }
}

/** To be called last: the tool goes on until the connection is closed. */
export async function checkStatelessCancellation(session) {
  const { wire } = session;
  const why = 'a cancellation names a request of a session, and there is none';
  session.notAvailable('cancellation/stops-the-tool', why);
  await session.check('cancellation/is-taken', async () => {
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
  });
  await session.check('cancellation/client-still-works', async () => {
    expect(await session.text('test_simple_text'), 'no text');
  });
}

/** What the error says: an error response, or a result with isError. */
async function failure(session, name, args) {
  let result;
  try {
    result = await session.client.callTool({ name, arguments: args });
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return error.message;
  }
  expect(result.isError, `${name} succeeded: ${textOf(result)}`);
  return textOf(result);
}
