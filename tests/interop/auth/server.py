"""A protected server in Python: `python server.py ISSUER`. It introspects access tokens at their issuer, and has one of the tools that
README.md describes: scopes of single tools are not in the package."""

import os
import socket
import sys
import threading

import httpx2
import mcp_types as types
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server

issuer = sys.argv[1]


class Introspection:
    async def verify_token(self, token):
        async with httpx2.AsyncClient(auth=("resource-server", "the+secret+of+a+resource+server")) as client:
            response = await client.post(f"{issuer}/token/introspection", data={"token": token})
        claims = response.json()
        if not claims.get("active"):
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=claims.get("aud"),
            subject=claims.get("sub"),
        )


async def list_tools(*_):
    return types.ListToolsResult(tools=[types.Tool(name="whoami", input_schema={"type": "object"})])


async def call_tool(*_):
    token = get_access_token()
    text = f"{token.subject} {' '.join(token.scopes)}"
    return types.CallToolResult(content=[types.TextContent(text=text)])


def end_with_input():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
resource = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
settings = AuthSettings(
    issuer_url=issuer,
    resource_server_url=resource,
    required_scopes=["notes:read"],
    validate_token_resource=True,
)
server = Server("protected", on_list_tools=list_tools, on_call_tool=call_tool)
application = server.streamable_http_app(auth=settings, token_verifier=Introspection())
print(f"listening on {resource}", flush=True)
uvicorn.Server(uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=1)).run(sockets=[listener])
