"""The way to the server: a pipe or HTTP. Keeps what went over it in both directions."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import mcp.client.stdio as package
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


@dataclass(frozen=True)
class Server:
    """What is driven: a command to start for each connection, or the address of what runs already."""

    command: Sequence[str] = ()
    url: str = ""
    has_sessions: bool = False

    def wire(self) -> Wire:
        return Http(self.url, not self.has_sessions) if self.url else Pipe(self.command)


class Wire(ABC):
    is_http = False
    is_stateless = False
    """Whether legacy clients are forgotten after each request."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.faults: list[Exception] = []
        """What the server sent where only messages belong."""
        self.complaints: list[str] = []
        """What the package complained of: it drops bad notifications with a warning in its log."""

    @abstractmethod
    def _streams(self) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """The transport of the package."""

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[tuple[Any, Any]]:
        with _Complaints(self.complaints):
            async with self._streams() as (read, write):
                to_client, client_read = anyio.create_memory_object_stream[Any](0)
                client_write, from_client = anyio.create_memory_object_stream[Any](0)

                async def inbound() -> None:
                    async with to_client:
                        async for item in read:
                            if isinstance(item, Exception):
                                self.faults.append(item)
                            else:
                                self.received.append(_plain(item))
                            await to_client.send(item)

                async def outbound() -> None:
                    async for item in from_client:
                        self.sent.append(_plain(item))
                        await write.send(item)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(inbound)
                    tasks.start_soon(outbound)
                    try:
                        yield client_read, client_write
                    finally:
                        tasks.cancel_scope.cancel()
                        for stream in (client_read, client_write, from_client):
                            stream.close()

    def last_request(self, method: str, name: str | None = None) -> dict[str, Any]:
        """The request that the client sent last for the method (and tool or prompt)."""
        for message in reversed(self.sent):
            if message.get("method") == method and "id" in message:
                if name is None or message["params"].get("name") == name:
                    return message
        raise LookupError(f"{method} was not sent")

    def requests_of_server(self, method: str | None = None) -> list[dict[str, Any]]:
        found = [m for m in self.received if "method" in m and "id" in m]
        return [m for m in found if method is None or m["method"] == method]

    def notifications(self, method: str, since: int = 0) -> list[dict[str, Any]]:
        """The notifications of the server, from the given index of `received` on."""
        return [m for m in self.received[since:] if m.get("method") == method and "id" not in m]

    def answers(self, request_id: object) -> list[dict[str, Any]]:
        return [m for m in self.received if "method" not in m and m.get("id") == request_id]

    def cancelled(self, request_id: object) -> bool:
        """Whether the client told the server that it gave up the request."""
        return any(
            m.get("method") == "notifications/cancelled" and m["params"].get("requestId") == request_id
            for m in self.sent
        )


class Pipe(Wire):
    def __init__(self, command: Sequence[str]) -> None:
        super().__init__()
        self._command = command
        self.killed = False
        """Whether the server had to be killed because it did not exit when its stdin closed."""

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        parameters = StdioServerParameters(command=self._command[0], args=list(self._command[1:]))
        with self._watch_for_kill():
            async with stdio_client(parameters) as streams:
                yield streams

    def _watch_for_kill(self) -> Any:
        # The package tells nobody when it has to kill a server.
        wire, kill = self, package._terminate_process_tree

        class Watch:
            def __enter__(self) -> None:
                async def noted(process: Any) -> None:
                    wire.killed = True
                    await kill(process)

                package._terminate_process_tree = noted

            def __exit__(self, *_: object) -> None:
                package._terminate_process_tree = kill

        return Watch()


class Http(Wire):
    is_http = True

    def __init__(self, url: str, is_stateless: bool) -> None:
        super().__init__()
        self._url = url
        self.is_stateless = is_stateless
        self.responses: list[httpx2.Response] = []
        """All of them; what was asked is in `request`."""

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[tuple[Any, Any]]:
        async def note(response: httpx2.Response) -> None:
            self.responses.append(response)

        async with create_mcp_http_client() as client:
            client.event_hooks = {"response": [note]}
            async with streamable_http_client(self._url, http_client=client) as streams:
                yield streams

    def last_response(self, name: str) -> httpx2.Response:
        """The response to the last request that is named so by its header: a tool, a prompt or a resource."""
        return next(r for r in reversed(self.responses) if r.request.headers.get("mcp-name") == name)

    def closed(self, request_id: object) -> bool:
        """Whether the response to the request was closed."""
        return any(r.is_closed for r in self.responses if json.loads(r.request.content).get("id") == request_id)


class _Complaints(logging.Handler):
    def __init__(self, complaints: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        self._complaints.append(record.getMessage())

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)


def _plain(item: Any) -> dict[str, Any]:
    return item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
