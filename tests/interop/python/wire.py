"""The pipe to the server: starts it, and keeps what went over it in both directions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp.client.stdio as package
from mcp.client.stdio import StdioServerParameters, stdio_client

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"


class Wire:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self.faults: list[Exception] = []
        """Lines on the server's stdout that are not messages."""
        self.complaints: list[str] = []
        """What the package complained of: it drops bad notifications with a warning in its log."""
        self.killed = False
        """Whether the server had to be killed because it did not exit when its stdin closed."""

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[tuple[Any, Any]]:
        parameters = StdioServerParameters(command=self._command[0], args=list(self._command[1:]))
        with self._watch_for_kill(), _Complaints(self.complaints):
            async with stdio_client(parameters) as (read, write):
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
