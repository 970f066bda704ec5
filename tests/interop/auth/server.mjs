// A protected server in TypeScript: `node server.mjs ISSUER`. It verifies access tokens with the keys of their issuer, and has two
// tools, which README.md describes.

import { createServer } from 'node:http';

import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter, requireBearerAuth } from '@modelcontextprotocol/express';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { createMcpHandler, isLegacyRequest, McpServer, OAuthError, OAuthErrorCode, requireScopes } from '@modelcontextprotocol/server';
import express from 'express';
import { createRemoteJWKSet, jwtVerify } from 'jose';

import { endWithInput, Sessions } from '../servers/typescript.mjs';

const issuer = process.argv[2];
const metadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri));

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const resource = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
  server.on('request', application(resource));
  console.log(`listening on ${resource}`);
});
endWithInput();

function application(resource) {
  const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);
  const protect = requireBearerAuth({
    expectedResource: resource,
    requiredScopes: ['notes:read'],
    resourceMetadataUrl,
    verifier: { verifyAccessToken: (token) => verify(token, resource) },
  });
  const sessions = new Sessions(async (options) => {
    const transport = new NodeStreamableHTTPServerTransport(options);
    await create().connect(transport);
    return transport;
  });
  const modern = toNodeHandler(createMcpHandler(create, { legacy: 'reject' }));
  const scopesSupported = ['notes:read'];
  return express()
    .use(mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: resource, scopesSupported }))
    .use('/mcp', protect, express.json(), async (request, response) => {
      // Express has taken the path away, which matters to nothing here.
      const { body } = request;
      const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
      await (isLegacy ? sessions.handle(request, response, body) : modern(request, response, body));
    });
}

async function verify(token, resource) {
  try {
    const { payload } = await jwtVerify(token, keys, { issuer, audience: resource.href, typ: 'at+jwt' });
    const { client_id: clientId, exp: expiresAt, scope = '', sub: subject } = payload;
    return { token, clientId, expiresAt, resource, scopes: scope.split(' '), extra: { subject } };
  } catch (error) {
    throw new OAuthError(OAuthErrorCode.InvalidToken, error.message);
  }
}

function create() {
  const mcp = new McpServer({ name: 'protected', version: '1.0.0' });
  mcp.registerTool('whoami', {}, ({ http }) => text(`${http.authInfo.extra.subject} ${http.authInfo.scopes.join(' ')}`));
  mcp.registerTool('write', { scopeChallenge: requireScopes('notes:write') }, () => text('written'));
  return mcp;
}

const text = (value) => ({ content: [{ type: 'text', text: value }] });
