"""Handshake revisions over HTTP without sessions: each request is served alone, so the server cannot ask or tell more."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from report import equal, expect, until
from session import QUIET, WATCHED, Session, answered, refusal, text_of

ASKING: dict[str, dict[str, Any] | None] = {
    "test_sampling": {"prompt": "interop prompt"},
    "test_elicitation": {"message": "interop message"},
    "test_elicitation_sep1034_defaults": None,
    "test_elicitation_sep1330_enums": None,
    "test_list_roots": None,
    "test_ask_both_eras": {"call": "stateless"},
    "test_ask_two_at_once": None,
}


async def check_stateless(session: Session) -> None:
    client, wire = session.client, session.wire
    async with session.check("logging/not-sent"):
        session.host.logged.clear()
        await session.call("test_tool_with_logging")
        await anyio.sleep(QUIET)
        equal(len(session.host.logged), 0, "log messages of a server that does not declare logging")
    async with session.check("logging/setLevel-is-refused"):
        async with refusal(types.METHOD_NOT_FOUND) as caught:
            await client.set_logging_level("error")
        expect("session" in caught[0].message, f"the remedy, a session, is not in {caught[0].message!r}")
    session.not_available("logging/level-is-respected", "there is no session to keep a level in")
    for tool, arguments in ASKING.items():
        async with session.check(f"asking-is-refused/{tool}"):
            why = await failure(session, tool, arguments)
            # The remedy, a session, is for the developer of the server, in its log.
            expect(why == "no request can be sent to the client", f"the model reads {why!r}")
            equal(wire.requests_of_server(), [], "requests of the server")
    async with session.check("roots/list-changed-is-taken"):
        await client.send_roots_list_changed()
        await session.call("test_simple_text")
    async with session.check("list-changed/not-told"):
        mark = len(wire.received)
        await session.call("test_trigger_changes")
        await anyio.sleep(QUIET)
        equal([m["method"] for m in wire.received[mark:] if "method" in m], [], "messages beside the answer")
    requests = {"subscribe": client.subscribe_resource, "unsubscribe": client.unsubscribe_resource}
    for name, request in requests.items():
        async with session.check(f"{name}-is-refused"):
            async with refusal(types.METHOD_NOT_FOUND) as caught:
                await request(WATCHED)
            expect("session" in caught[0].message, f"the remedy, a session, is not in {caught[0].message!r}")


async def check_stateless_cancellation(session: Session) -> None:
    """To be called last: the tool goes on until the connection is closed."""
    wire = session.wire
    session.not_available("cancellation/stops-the-tool", "a cancellation names a request of a session, and there is none")
    async with session.check("cancellation/is-taken"):
        seen: list[float] = []

        async def note(progress: float, _total: float | None, _message: str | None) -> None:
            seen.append(progress)

        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await session.client.call_tool("test_slow", {"seconds": 60}, progress_callback=note)

            tasks.start_soon(call)
            await until(lambda: len(seen) >= 2)
            tasks.cancel_scope.cancel()
        request_id = wire.last_request("tools/call", "test_slow")["id"]
        await until(lambda: wire.cancelled(request_id))
    async with session.check("cancellation/client-still-works"):
        equal(await session.text("test_simple_text"), "This is a simple text response for testing.", "text")


async def failure(session: Session, tool: str, arguments: dict[str, Any] | None) -> str:
    """What the error says: an error response, or a result with isError."""
    try:
        result = await session.client.call_tool(tool, arguments)
    except MCPError as error:
        answered(error)
        return error.message
    expect(result.is_error, f"{tool} succeeded: {text_of(result)}")
    return text_of(result)
