"""The revisions that open with a handshake: 2024-11-05 to 2025-11-25."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import mcp.client.session
import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from host import ROOTS, SAMPLED, Host, filled
from report import Report, describe, equal, expect, until
from session import (
    CONNECT_WAIT,
    QUIET,
    WATCHED,
    Session,
    answered,
    check_asking,
    check_cancellation,
    check_complaints,
    check_completion,
    check_lists,
    check_nothing_under_way,
    check_progress,
    check_prompts,
    check_resources,
    check_tools,
    check_wire,
    check_wire_closed,
    text_of,
)
from stateless import check_stateless, check_stateless_cancellation
from wire import Server

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]

# The package warns of everything that 2026-07-28 deprecated.
warnings.simplefilter("ignore", MCPDeprecationWarning)


@contextmanager
def offering(revision: str) -> Iterator[None]:
    """Makes the package offer the revision: it has no option for this."""
    newest = mcp.client.session.LATEST_HANDSHAKE_VERSION
    mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    try:
        yield
    finally:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = newest


@asynccontextmanager
async def connected(
    report: Report, server: Server, revision: str, callbacks: Sequence[str] = ()
) -> AsyncIterator[Session]:
    wire, host = server.wire(), Host()
    with offering(revision):
        client = Client(
            wire.transport(),
            mode="legacy",
            cache=None,
            read_timeout_seconds=CONNECT_WAIT,
            **host.callbacks(*callbacks),
        )
        async with client:
            yield Session(report, revision, "legacy", client, wire, host)


async def drive(report: Report, server: Server, revision: str) -> None:
    try:
        async with connected(report, server, revision) as session:
            await check_handshake(session)
            await check_lists(session)
            await check_tools(session)
            await check_reconnection(session)
            await check_prompts(session)
            await check_resources(session)
            await check_completion(session)
            await check_progress(session)
            await (check_stateless if session.wire.is_stateless else check_in_session)(session)
            await check_complaints(session)
            await (check_stateless_cancellation if session.wire.is_stateless else check_cancellation)(session)
            await check_wire(session)
        check_wire_closed(session)
    except Exception as error:
        report.fail(f"{revision}/connection", describe(error))
    await check_without_capabilities(report, server, revision)
    if revision == "2025-03-26":
        report.not_available(f"{revision}/batch", "the package neither sends nor reads batches")


async def check_in_session(session: Session) -> None:
    """What needs a server that remembers the client."""
    await check_logging(session)
    await check_sampling(session)
    await check_elicitation(session)
    await check_roots(session)
    if session.revision >= "2025-06-18":
        await check_asking(session)
    await check_list_changed(session)
    await check_subscriptions(session)


async def check_handshake(session: Session) -> None:
    client = session.client
    async with session.check("initialize"):
        equal(session.wire.sent[0]["params"]["protocolVersion"], session.revision, "offered version")
        equal(client.protocol_version, session.revision, "negotiated version")
        expect(client.server_info and client.server_info.name and client.server_info.version, "no serverInfo")
    async with session.check("initialize-capabilities"):
        offered = client.server_capabilities
        expect(offered.tools and offered.prompts and offered.resources, "tools, prompts or resources are not declared")
        kinds = (offered.tools, offered.prompts, offered.resources)
        tells = not session.wire.is_stateless  # nothing can be told to a client that is forgotten at once
        equal([bool(kind.list_changed) for kind in kinds], [tells] * 3, "listChanged of tools, prompts, resources")
        equal(bool(offered.resources.subscribe), tells, "resources.subscribe")
        equal(offered.logging is not None, tells, "logging")
        if session.revision >= "2025-03-26":
            expect(offered.completions is not None, "completions is not declared")
    async with session.check("ping"):
        await client.send_ping()
        request = session.wire.last_request("ping")
        equal(session.wire.answers(request["id"])[0]["result"], {}, "result")


async def check_reconnection(session: Session) -> None:
    async with session.check("tool/test_reconnection"):
        expect(await session.text("test_reconnection"), "no text")


async def check_logging(session: Session) -> None:
    async with session.check("logging/messages-arrive"):
        await session.client.set_logging_level("debug")
        session.host.logged.clear()
        await session.call("test_tool_with_logging")
        await until(lambda: len(session.host.logged) >= 3)
        equal({entry.level for entry in session.host.logged}, {"info"}, "levels")
    async with session.check("logging/level-is-respected"):
        await session.client.set_logging_level("error")
        session.host.logged.clear()
        await session.call("test_tool_with_logging")
        await anyio.sleep(QUIET)
        equal(len(session.host.logged), 0, "messages below the level")


async def check_sampling(session: Session) -> None:
    async with session.check("sampling"):
        text = await session.text("test_sampling", {"prompt": "interop prompt"})
        (params,) = session.host.sampled
        equal(params.messages[0].content.text, "interop prompt", "prompt that the client got")
        equal(params.max_tokens, 100, "maxTokens")
        expect(SAMPLED in text, f"the answer is not in {text!r}")


async def check_elicitation(session: Session) -> None:
    host = session.host
    if session.revision < "2025-06-18":
        for tool in ("test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"):
            async with session.check(f"elicitation/{tool}-refused"):
                arguments = {"message": "interop"} if tool == "test_elicitation" else None
                await expect_failure(session, tool, arguments)
                equal(session.wire.requests_of_server("elicitation/create"), [], "elicitations in this revision")
        return
    for action in ("accept", "decline", "cancel"):
        async with session.check(f"elicitation/{action}"):
            host.action = action
            host.elicited.clear()
            text = await session.text("test_elicitation", {"message": "interop message"})
            (params,) = host.elicited
            equal(params.message, "interop message", "message that the client got")
            equal(sorted(params.requested_schema["properties"]), ["email", "username"], "fields")
            equal(sorted(params.requested_schema["required"]), ["email", "username"], "required fields")
            expect(action in text, f"the action is not in {text!r}")
            if action == "accept":
                for value in filled(params.requested_schema).values():
                    expect(value in text, f"{value!r} is not in {text!r}")
    host.action = "accept"
    async with session.check("elicitation/defaults"):
        host.elicited.clear()
        await session.call("test_elicitation_sep1034_defaults")
        (params,) = host.elicited
        fields = params.requested_schema["properties"]
        defaults = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
        equal(sorted(fields), sorted(defaults), "fields")
        if session.revision == "2025-06-18":
            defaults = {"verified": True}  # only booleans have defaults there
        equal({name: fields[name].get("default") for name in defaults}, defaults, "defaults")
    if session.revision == "2025-06-18":
        async with session.check("elicitation/enums-refused-or-cut"):
            host.elicited.clear()
            try:
                await session.client.call_tool("test_elicitation_sep1330_enums")
            except MCPError as error:
                answered(error)
            for params in host.elicited:
                kinds = {field["type"] for field in params.requested_schema["properties"].values()}
                expect("array" not in kinds, "lists do not exist in forms of this revision")
        return
    async with session.check("elicitation/enums"):
        host.elicited.clear()
        text = await session.text("test_elicitation_sep1330_enums")
        (params,) = host.elicited
        fields = params.requested_schema["properties"]
        single, titled, legacy = fields["untitledSingle"], fields["titledSingle"], fields["legacyEnum"]
        expect("enum" in single and "oneOf" not in single and "enumNames" not in single, "untitledSingle")
        expect({"const", "title"} <= titled["oneOf"][0].keys() and "enum" not in titled, "titledSingle")
        equal(len(legacy["enumNames"]), len(legacy["enum"]), "length of enumNames")
        expect("enum" in fields["untitledMulti"]["items"], "untitledMulti")
        expect({"const", "title"} <= fields["titledMulti"]["items"]["anyOf"][0].keys(), "titledMulti")
        expect("accept" in text, f"the action is not in {text!r}")


async def check_roots(session: Session) -> None:
    async with session.check("roots"):
        text = await session.text("test_list_roots")
        expect(session.host.roots_listed == 1, "the client was not asked")
        for uri in ROOTS:
            expect(uri in text, f"{uri} is not in {text!r}")
    async with session.check("roots/list-changed-is-taken"):
        await session.client.send_roots_list_changed()
        await session.call("test_simple_text")


async def check_list_changed(session: Session) -> None:
    for kind in ("tools", "prompts", "resources"):
        async with session.check(f"list-changed/{kind}"):
            mark = len(session.wire.received)
            await session.call("test_trigger_changes")
            await until(lambda: session.wire.notifications(f"notifications/{kind}/list_changed", mark))


async def check_subscriptions(session: Session) -> None:
    wire = session.wire
    updated = "notifications/resources/updated"
    async with session.check("subscribe/nothing-before"):
        equal(wire.notifications(updated), [], "updates without a subscription")
    async with session.check("subscribe"):
        await session.client.subscribe_resource(WATCHED)
        mark = len(wire.received)
        await session.call("test_trigger_changes")
        await until(lambda: wire.notifications(updated, mark))
        equal(wire.notifications(updated, mark)[0]["params"]["uri"], WATCHED, "uri")
    async with session.check("unsubscribe"):
        await session.client.unsubscribe_resource(WATCHED)
        mark = len(wire.received)
        await session.call("test_trigger_changes")
        await until(lambda: wire.notifications("notifications/tools/list_changed", mark))
        await anyio.sleep(QUIET)
        equal(wire.notifications(updated, mark), [], "updates after the end of the subscription")


async def check_without_capabilities(report: Report, server: Server, revision: str) -> None:
    """A client that declares nothing must not be asked anything. This is a connection after the one with all checks."""
    calls = {
        "sampling": ("sampling/createMessage", "test_sampling", {"prompt": "x"}),
        "roots": ("roots/list", "test_list_roots", None),
    }
    if revision >= "2025-06-18":
        calls["elicitation"] = ("elicitation/create", "test_elicitation", {"message": "x"})
    try:
        async with connected(report, server, revision, callbacks=("logging_callback",)) as session:
            for capability, (method, tool, arguments) in calls.items():
                async with session.check(f"without-capability/{capability}"):
                    await expect_failure(session, tool, arguments)
                    equal(session.wire.requests_of_server(method), [], "requests of the server")
            if session.wire.is_stateless:
                async with session.check("cancellation/by-closing"):
                    await check_nothing_under_way(session)
    except Exception as error:
        report.fail(f"{revision}/without-capability", describe(error))


async def check_counter_offer(report: Report, server: Server) -> None:
    async with report.check("negotiation/unknown-version", CONNECT_WAIT):
        async with connected(report, server, "2099-01-01") as session:
            equal(session.client.protocol_version, REVISIONS[-1], "version that the server offered instead")


async def expect_failure(session: Session, tool: str, arguments: dict[str, Any] | None) -> None:
    """Either an error response or a result with isError."""
    try:
        result: types.CallToolResult = await session.client.call_tool(tool, arguments)
    except MCPError as error:
        answered(error)
        return
    expect(result.is_error, f"{tool} succeeded: {text_of(result)}")
