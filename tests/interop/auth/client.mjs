// A client in TypeScript that logs in: `node client.mjs URL NAME`. NAME logs in with the browser, and again when a tool needs more.
// With `--legacy` there is a session; with `--dpop` tokens are bound to a key; with `--lifetime SECONDS` a token is refreshed, too.

import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

import { equal, expect, Report, sleep } from '../typescript/report.mjs';

/** Milliseconds for a check with a person in it, and for all of them. */
const PERSON = 60_000;
const TOTAL = 120_000;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dpop: { type: 'boolean', default: false },
    legacy: { type: 'boolean', default: false },
    lifetime: { type: 'string' },
  },
});
const [url, name] = positionals;

/** What the package leaves to its users: memory, a browser, and where the redirect goes to. */
class Login {
  logins = 0;
  #client;
  #discovered;
  #tokens;
  #verifier;
  #dpop = options.dpop ? DpopSession.create() : undefined;
  #server;
  #redirected;

  async listen() {
    this.#server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url, this.redirectUrl);
      if (pathname !== '/callback') return void response.writeHead(404).end();
      response.end('You may close this window.');
      this.#redirected(searchParams);
    });
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get redirectUrl() {
    return `http://127.0.0.1:${this.#server.address().port}/callback`;
  }

  get clientMetadata() {
    return {
      application_type: 'native',
      client_name: 'interop',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [this.redirectUrl],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }

  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);
  discoveryState = () => this.#discovered;
  saveDiscoveryState = (discovered) => void (this.#discovered = discovered);
  dpop = () => this.#dpop;

  redirectToAuthorization(address) {
    this.logins += 1;
    const redirect = new Promise((resolve) => (this.#redirected = resolve));
    const script = fileURLToPath(new URL('browser.mjs', import.meta.url));
    const browsing = promisify(execFile)(process.execPath, [script, 'login', address.href, name]);
    this.redirect = Promise.all([redirect, browsing]).then(([parameters]) => parameters);
    this.redirect.catch(() => {}); // whoever waits for it sees it
  }
}

const report = new Report();
const login = new Login();
await login.listen();
setTimeout(() => {
  report.fail('total-time', `not done within ${TOTAL / 1000} s`);
  finish();
}, TOTAL);

/** Runs something that may need a login, and runs it again afterwards. */
async function loggedIn(transport, run) {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await login.redirect);
    return await run();
  }
}

const text = ({ content }) => content[0].text;
const open = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: login });
const negotiation = options.legacy ? {} : { versionNegotiation: { mode: 'auto' } };
let client;
let transport;
await report.check('login', async () => {
  await loggedIn(open(), async () => {
    transport = open();
    client = new Client({ name: 'interop', version: '1.0.0' }, negotiation);
    await client.connect(transport);
  });
  equal(login.logins, 1, 'logins');
  equal(login.tokens().token_type.toLowerCase(), options.dpop ? 'dpop' : 'bearer', 'kind of token');
}, PERSON);
await report.check('revision', async () => {
  equal(client.getNegotiatedProtocolVersion(), options.legacy ? '2025-11-25' : '2026-07-28', 'revision');
});
await report.check('whoami', async () => {
  equal(text(await client.callTool({ name: 'whoami' })), `${name} notes:read`, 'text');
});
await report.check('step-up', async () => {
  equal(text(await loggedIn(transport, () => client.callTool({ name: 'write' }))), 'written', 'text');
  equal(login.logins, 2, 'logins');
}, PERSON);
await report.check('scopes-add-up', async () => {
  equal(text(await client.callTool({ name: 'whoami' })), `${name} notes:read notes:write`, 'text');
});
if (options.lifetime) {
  await report.check('refresh', async () => {
    const before = login.tokens();
    expect(before.refresh_token, 'there is no refresh token');
    await sleep(Number(options.lifetime) * 1000 + 1000);
    equal(text(await client.callTool({ name: 'whoami' })), `${name} notes:read notes:write`, 'text');
    expect(before.access_token !== login.tokens().access_token, 'the token is the old one');
    expect(before.refresh_token !== login.tokens().refresh_token, 'the refresh token is the old one');
    equal(login.logins, 2, 'logins');
  }, PERSON);
}
await report.check('close', () => client.close());
finish();

function finish() {
  if (report.failed) console.log(`${report.failed} checks failed`);
  console.log(`${report.passed} checks passed`);
  process.exit(report.failed || !report.passed ? 1 : 0);
}
