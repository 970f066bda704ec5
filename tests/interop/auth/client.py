"""A client in Python that logs in: `python client.py NODE URL NAME`. NAME logs in with the browser, which NODE runs, and again when a
tool needs more. With `--legacy` there is a session; with `--lifetime SECONDS` a token is refreshed, too."""

import argparse
import asyncio
import os
import sys
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.append(str(Path(__file__).parent.parent / "python"))

from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata
from report import Report, equal, expect

PERSON = 60.0
"""Seconds for a check with a person in it."""

TOTAL = 120.0
"""Seconds for all of them."""


class Login:
    """What the package leaves to its users: memory, a browser, and where the redirect goes to."""

    def __init__(self, node, name):
        self.node, self.name = node, name
        self.logins = 0
        self.tokens = self.client = None
        self.redirected = None

    async def listen(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        self.redirect_uri = f"http://127.0.0.1:{port}/callback"

    async def _serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        target = urlsplit(head.split(" ")[1])
        found = target.path == "/callback"
        body = "You may close this window."
        status = "200 OK" if found else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()
        if found:
            self.redirected.set_result({name: value[0] for name, value in parse_qs(target.query).items()})

    async def open(self, url):
        self.logins += 1
        self.redirected = asyncio.get_running_loop().create_future()
        browser = Path(__file__).parent / "browser.mjs"
        self.browsing = await asyncio.create_subprocess_exec(
            self.node, browser, "login", url, self.name, stdout=asyncio.subprocess.DEVNULL
        )

    async def callback(self):
        equal(await self.browsing.wait(), 0, "exit code of the browser")
        parameters = await self.redirected
        return AuthorizationCodeResult(
            code=parameters["code"], state=parameters.get("state"), iss=parameters.get("iss")
        )

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def text(client, tool):
    result = await client.call_tool(tool, {})
    return result.content[0].text


async def drive(report, options):
    login = Login(options.node, options.name)
    await login.listen()
    metadata = OAuthClientMetadata(
        client_name="interop", redirect_uris=[login.redirect_uri], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(options.url, metadata, login, login.open, login.callback)
    async with create_mcp_http_client(auth=auth) as http:
        mode = "legacy" if options.legacy else "auto"
        transport = streamable_http_client(options.url, http_client=http)
        async with Client(transport, mode=mode, cache=None, read_timeout_seconds=PERSON) as client:
            async with report.check("login"):
                equal(login.logins, 1, "logins")
            async with report.check("revision"):
                equal(client.protocol_version, "2025-11-25" if options.legacy else "2026-07-28", "revision")
            async with report.check("whoami"):
                equal(await text(client, "whoami"), f"{options.name} notes:read", "text")
            async with report.check("step-up", PERSON):
                equal(await text(client, "write"), "written", "text")
                equal(login.logins, 2, "logins")
            async with report.check("scopes-add-up"):
                equal(await text(client, "whoami"), f"{options.name} notes:read notes:write", "text")
            if options.lifetime:
                async with report.check("refresh", PERSON):
                    before = login.tokens
                    expect(before.refresh_token, "there is no refresh token")
                    await asyncio.sleep(options.lifetime + 1)
                    equal(await text(client, "whoami"), f"{options.name} notes:read notes:write", "text")
                    expect(before.access_token != login.tokens.access_token, "the token is the old one")
                    expect(before.refresh_token != login.tokens.refresh_token, "the refresh token is the old one")
                    equal(login.logins, 2, "logins")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("node")
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("--legacy", action="store_true")
    parser.add_argument("--lifetime", type=float)
    report = Report()
    watchdog = threading.Timer(TOTAL, os._exit, [1])
    watchdog.daemon = True
    watchdog.start()
    asyncio.run(drive(report, parser.parse_args()))
    print(f"{report.passed} checks passed")
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
