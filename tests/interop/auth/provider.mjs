// A real authorization server: `oidc-provider`, with its own pages for logging in and for consent. It accepts any name with any
// password. What it offers is in README.md.

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

import { Provider } from 'oidc-provider';

import { endWithInput } from '../servers/typescript.mjs';

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    // Seconds that access tokens live.
    lifetime: { type: 'string', default: '300' },
    // Access tokens that mean nothing to a client or a resource server, so that they have to be introspected.
    opaque: { type: 'boolean', default: false },
    // What signs access tokens.
    algorithm: { type: 'string', default: 'ES256' },
    // Whether DPoP proofs need a nonce of this server.
    'dpop-nonce': { type: 'boolean', default: false },
    // The public key of the client `machine-with-key`, as a JWK.
    'machine-key': { type: 'string' },
    // One line on standard error for each token response, refusal and revocation.
    events: { type: 'boolean', default: false },
  },
});

const SCOPES = 'notes:read notes:write';

const server = createServer();
server.listen(Number(options.port), '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration());
  if (options.events) tell(provider);
  server.on('request', provider.callback());
  console.log(`listening on ${issuer}`);
});
endWithInput();

function configuration() {
  return {
    clients: clients(),
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    cookies: { keys: [randomBytes(32).toString('hex')] },
    enabledJWA: { clientAuthSigningAlgValues: ['ES256', 'RS256', 'EdDSA'] },
    jwks: { keys: [signingKey('rsa', { modulusLength: 2048 }, 'RS256'), signingKey('ec', { namedCurve: 'P-256' }, 'ES256')] },
    features: {
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      devInteractions: { enabled: true },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => options['dpop-nonce'] },
      introspection: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: { enabled: true, getResourceServerInfo: resourceServer },
      revocation: { enabled: true },
    },
    // The official clients register the scopes of their first challenge, and later ask for more. As many servers do, this one does not
    // hold them to what they registered (RFC 7591, section 2). The name is that of the hook, not of any metadata.
    extraClientMetadata: { properties: ['any_scope'], validator: (_ctx, _key, _value, metadata) => delete metadata.scope },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    pkce: { required: () => true },
    // Each refresh token is good once. Using it again revokes the grant, and with it all of its tokens.
    rotateRefreshToken: true,
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    ttl: {
      AccessToken: Number(options.lifetime),
      AuthorizationCode: 60,
      ClientCredentials: Number(options.lifetime),
      DeviceCode: 300,
      Grant: 86_400,
      IdToken: 3600,
      Interaction: 3600,
      RefreshToken: 86_400,
      Session: 86_400,
    },
  };
}

/** Clients that need no registration. */
function clients() {
  const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
  const clients = [
    { ...machine, client_id: 'machine', client_secret: 'the secret: of a machine' },
    // What resource servers introspect tokens with.
    { ...machine, client_id: 'resource-server', client_secret: 'the secret of a resource server' },
  ];
  if (options['machine-key']) {
    clients.push({
      ...machine,
      client_id: 'machine-with-key',
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [JSON.parse(options['machine-key'])] },
    });
  }
  return clients;
}

/** Any resource is known here. The audience of its tokens is the resource as the client wrote it. */
function resourceServer(_, resource) {
  return {
    scope: SCOPES,
    audience: resource,
    accessTokenTTL: Number(options.lifetime),
    accessTokenFormat: options.opaque ? 'opaque' : 'jwt',
    jwt: { sign: { alg: options.algorithm } },
  };
}

function signingKey(type, parameters, alg) {
  return { ...generateKeyPairSync(type, parameters).privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: alg };
}

/** Tells what happened, without what is secret. */
function tell(provider) {
  const say = (...words) => console.error(words.join(' '));
  provider.on('grant.success', ({ oidc }) => {
    const { grant_type: grant, client_id, scope = '', resource = '' } = oidc.params;
    say('granted', grant, oidc.client.clientId ?? client_id, `scope=${scope}`, `resource=${resource}`);
  });
  provider.on('grant.error', ({ oidc }, error) => {
    say('refused', oidc.params?.grant_type, error.error, error.error_detail ?? '');
  });
  provider.on('grant.revoked', () => say('revoked'));
  provider.on('registration_create.success', (_, client) => say('registered', client.applicationType, client.clientId));
  provider.on('server_error', (_, error) => console.error(error));
}
