"""The revision in which every request stands for itself: 2026-07-28."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.session import ClientSession
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

from host import ROOTS, SAMPLED, Host, filled
from report import Report, describe, equal, expect, until
from session import (
    CONNECT_WAIT,
    QUIET,
    WATCHED,
    Session,
    check_asking,
    check_cancellation,
    check_complaints,
    check_completion,
    check_lists,
    check_progress,
    check_prompts,
    check_resources,
    check_tools,
    check_wire,
    check_wire_closed,
    refusal,
)
from wire import SUBSCRIPTION_ID, Http, Server, Wire

REVISION = "2026-07-28"
PREFIX = "test_input_required_result_"
CHANGES = {
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
}


@asynccontextmanager
async def connected(
    report: Report, server: Server, mode: str, callbacks: Sequence[str] = ()
) -> AsyncIterator[Session]:
    """`mode` is `auto` (ask the server what it speaks) or the revision (just speak it)."""
    wire, host = server.wire(), Host()
    client = Client(
        wire.transport(),
        mode=mode,
        cache=None,
        read_timeout_seconds=CONNECT_WAIT,
        **host.callbacks(*callbacks),
    )
    async with client:
        yield Session(report, REVISION, "modern", client, wire, host)


async def drive(report: Report, server: Server) -> None:
    try:
        async with connected(report, server, "auto") as session:
            await check_discover(session)
            await check_lists(session)
            await check_tools(session)
            await check_modern_tools(session)
            await check_prompts(session)
            await check_resources(session)
            await check_completion(session)
            await check_progress(session)
            await check_logging(session)
            await check_input(session)
            await check_asking(session)
            await check_listen(session)
            await check_removed_methods(session)
            async with session.check("no-requests-of-the-server"):
                equal(session.wire.requests_of_server(), [], "requests of the server")
            await check_complaints(session)
            await check_cancellation(session)
            if isinstance(session.wire, Http):
                async with session.check("cancellation/by-closing"):
                    wire = session.wire
                    slow = [m for m in wire.sent if m["params"].get("arguments") == {"seconds": 60}]
                    equal([wire.closed(m["id"]) for m in slow], [True], "whether the response was closed")
                    posted = [json.loads(r.request.content)["method"] for r in wire.responses]
                    expect("notifications/cancelled" not in posted, "the cancellation was posted as well")
            await check_wire(session)
        check_wire_closed(session)
    except Exception as error:
        report.fail(f"{REVISION}/connection", describe(error))
    await check_few_capabilities(report, server)
    await check_both_eras(report, server)


async def check_discover(session: Session) -> None:
    client = session.client
    async with session.check("discover"):
        equal(session.wire.sent[0]["method"], "server/discover", "first message")
        expect(all(m.get("method") != "initialize" for m in session.wire.sent), "the client fell back to initialize")
        equal(client.protocol_version, REVISION, "version")
        result = client.session.discover_result
        expect(result and REVISION in result.supported_versions, "the version is not among supportedVersions")
        expect(client.server_info and client.server_info.name and client.server_info.version, "no serverInfo")
    async with session.check("discover-capabilities"):
        offered = client.server_capabilities
        expect(offered.tools and offered.tools.list_changed, "tools.listChanged is not declared")
        expect(offered.prompts and offered.prompts.list_changed, "prompts.listChanged is not declared")
        expect(offered.resources and offered.resources.list_changed, "resources.listChanged is not declared")
        expect(offered.resources.subscribe, "resources.subscribe is not declared")
        expect(offered.completions is not None, "completions is not declared")
    async with session.check("discover-cache-hints"):
        answer = session.wire.answers(session.wire.sent[0]["id"])[0]["result"]
        expect(isinstance(answer.get("ttlMs"), int) and answer["ttlMs"] >= 0, "ttlMs")
        expect(answer.get("cacheScope") in ("public", "private"), "cacheScope")
        equal(answer.get("resultType"), "complete", "resultType")
    async with session.check("discover-unsupported-version"):
        async with refusal(types.UNSUPPORTED_PROTOCOL_VERSION) as caught:
            await client.session.send_discover("2099-01-01")
        equal(caught[0].data.get("requested"), "2099-01-01", "data.requested")
        expect(REVISION in caught[0].data.get("supported", []), "data.supported")


async def check_modern_tools(session: Session) -> None:
    async with session.check("tool/test_custom_header"):
        text = await session.text("test_custom_header", {"value": "interop-value"})
        expect("interop-value" in text, f"the value is not in {text!r}")
        if isinstance(session.wire, Http):
            headers = session.wire.last_response("test_custom_header").request.headers
            equal(headers.get("mcp-param-value"), "interop-value", "header")
    async with session.check("tool/test_missing_capability"):
        expect(await session.text("test_missing_capability"), "no text")
    async with session.check("tool/test_streaming_elicitation"):
        await session.call("test_streaming_elicitation")
    async with session.check("every-result-has-a-resultType"):
        lacking = [m for m in session.wire.received if "result" in m and "resultType" not in m["result"]]
        equal(lacking, [], "results without it")


async def check_logging(session: Session) -> None:
    notified = "notifications/message"
    async with session.check("logging/only-if-asked"):
        mark = len(session.wire.received)
        await session.call("test_logging_tool")
        await session.call("test_tool_with_logging")
        await anyio.sleep(QUIET)
        equal(session.wire.notifications(notified, mark), [], "messages without logLevel")
    async with session.check("logging/messages-arrive"):
        session.host.logged.clear()
        await session.call("test_tool_with_logging", meta={types.LOG_LEVEL_META_KEY: "debug"})
        await until(lambda: len(session.host.logged) >= 3)
    async with session.check("logging/level-is-respected"):
        mark = len(session.wire.received)
        await session.call("test_tool_with_logging", meta={types.LOG_LEVEL_META_KEY: "error"})
        await anyio.sleep(QUIET)
        equal(session.wire.notifications(notified, mark), [], "messages below the level")


async def check_input(session: Session) -> None:
    """Results that ask for input first; the client answers by its callbacks and calls again."""
    host = session.host
    async with session.check("input/elicitation"):
        host.elicited.clear()
        text = await session.text(PREFIX + "elicitation")
        (params,) = host.elicited
        for value in filled(params.requested_schema).values():
            expect(str(value) in text, f"{value!r} is not in {text!r}")
    async with session.check("input/sampling"):
        text = await session.text(PREFIX + "sampling")
        expect(host.sampled, "the client was not asked")
        expect(SAMPLED in text, f"the answer is not in {text!r}")
    async with session.check("input/roots"):
        text = await session.text(PREFIX + "list_roots")
        expect(host.roots_listed == 1, "the client was not asked")
        for uri in ROOTS:
            expect(uri in text, f"{uri} is not in {text!r}")
    async with session.check("input/request-state"):
        expect(await session.text(PREFIX + "request_state"), "no text")
        expect(session.wire.last_request("tools/call")["params"].get("requestState"), "no requestState was sent back")
    async with session.check("input/multiple"):
        before = (len(host.elicited), len(host.sampled), host.roots_listed)
        expect(await session.text(PREFIX + "multiple_inputs"), "no text")
        after = (len(host.elicited), len(host.sampled), host.roots_listed)
        expect(all(new > old for old, new in zip(before, after, strict=True)), f"{before} became {after}")
    async with session.check("input/multi-round"):
        mark = len(session.wire.sent)
        expect(await session.text(PREFIX + "multi_round"), "no text")
        calls = [m for m in session.wire.sent[mark:] if m.get("method") == "tools/call"]
        equal(len(calls), 3, "calls")
        states = [m["params"].get("requestState") for m in calls]
        expect(states[0] is None and states[1] and states[2] and states[1] != states[2], f"states: {states}")
    async with session.check("input/prompt"):
        result = await session.client.get_prompt("test_input_required_result_prompt")
        expect(result.messages, "no messages")
    async with session.check("input/asks-again"):
        first = await session.client.session.call_tool(PREFIX + "elicitation", allow_input_required=True)
        expect(isinstance(first, types.InputRequiredResult), "input was not required")
        equal(list(first.input_requests or {}), ["user_name"], "keys")
        again = await session.client.session.call_tool(
            PREFIX + "elicitation",
            input_responses={"other": types.ElicitResult(action="accept", content={"name": "x"})},
            request_state=first.request_state,
            allow_input_required=True,
        )
        expect(isinstance(again, types.InputRequiredResult), "an unknown key was taken for the answer")
    async with session.check("input/tampered-state"):
        tool = PREFIX + "tampered_state"
        first = await session.client.session.call_tool(tool, allow_input_required=True)
        expect(isinstance(first, types.InputRequiredResult) and first.request_state, "no requestState")
        (key,) = first.input_requests or {}
        async with refusal():
            await session.client.session.call_tool(
                tool,
                input_responses={key: types.ElicitResult(action="accept", content={"ok": True})},
                request_state=first.request_state + "-TAMPERED",
                allow_input_required=True,
            )


async def check_listen(session: Session) -> None:
    client, wire = session.client, session.wire
    every = dict(
        tools_list_changed=True,
        prompts_list_changed=True,
        resources_list_changed=True,
        resource_subscriptions=[WATCHED],
    )
    async with session.check("listen/nothing-unasked"):
        mark = len(wire.received)
        await session.call("test_trigger_changes")
        await anyio.sleep(QUIET)
        equal(changes(wire, mark), [], "changes that nobody listens to")
    async with session.check("listen/acknowledged"):
        async with client.listen(**every) as subscription:
            honored = subscription.honored
            expect(honored.tools_list_changed and honored.prompts_list_changed, "tools or prompts not acknowledged")
            expect(honored.resources_list_changed, "resources not acknowledged")
            equal(honored.resource_subscriptions, [WATCHED], "resourceSubscriptions")
    events = {
        "tools": ("test_trigger_tool_change", {ToolsListChanged()}),
        "prompts": ("test_trigger_prompt_change", {PromptsListChanged()}),
        "all": (
            "test_trigger_changes",
            {ToolsListChanged(), PromptsListChanged(), ResourcesListChanged(), ResourceUpdated(WATCHED)},
        ),
    }
    for name, (tool, expected) in events.items():
        async with session.check(f"listen/changes-{name}"):
            async with client.listen(**every) as subscription:
                mark = len(wire.received)
                await session.call(tool)
                seen = set()
                while not expected <= seen:
                    seen.add(await anext(subscription))
                await anyio.sleep(QUIET)
                equal(seen, expected, "changes")
                equal(len(changes(wire, mark)), len(expected), "notifications")
                ids = {m["params"]["_meta"][SUBSCRIPTION_ID] for m in changes(wire, mark)}
                equal(ids, {subscription.subscription_id}, "subscription ids")
    async with session.check("listen/filter"):
        async with client.listen(prompts_list_changed=True) as subscription:
            expect(not subscription.honored.tools_list_changed, "tools acknowledged unasked")
            mark = len(wire.received)
            await session.call("test_trigger_changes")
            equal(await anext(subscription), PromptsListChanged(), "change")
            await anyio.sleep(QUIET)
            equal([m["method"] for m in changes(wire, mark)], ["notifications/prompts/list_changed"], "changes")
    async with session.check("listen/other-resource"):
        async with client.listen(resource_subscriptions=["test://static-text"]):
            mark = len(wire.received)
            await session.call("test_trigger_changes")
            await anyio.sleep(QUIET)
            equal(changes(wire, mark), [], "changes")
    async with session.check("listen/two-streams"):
        async with client.listen(tools_list_changed=True) as one, client.listen(tools_list_changed=True) as two:
            mark = len(wire.received)
            await session.call("test_trigger_tool_change")
            equal((await anext(one), await anext(two)), (ToolsListChanged(), ToolsListChanged()), "changes")
            ids = sorted(m["params"]["_meta"][SUBSCRIPTION_ID] for m in changes(wire, mark))
            equal(ids, sorted([one.subscription_id, two.subscription_id]), "subscription ids")
    async with session.check("listen/ends"):
        async with client.listen(tools_list_changed=True) as subscription:
            pass
        await until(lambda: wire.cancelled(subscription.subscription_id))
        await anyio.sleep(QUIET)
        mark = len(wire.received)
        await session.call("test_trigger_tool_change")
        await anyio.sleep(QUIET)
        equal(changes(wire, mark), [], "changes after the end")


def changes(wire: Wire, since: int) -> list[dict]:
    return [m for m in wire.received[since:] if m.get("method") in CHANGES]


async def check_removed_methods(session: Session) -> None:
    requests = {
        "ping": session.client.send_ping,
        "logging/setLevel": lambda: session.client.set_logging_level("info"),
        "resources/subscribe": lambda: session.client.subscribe_resource(WATCHED),
        "resources/unsubscribe": lambda: session.client.unsubscribe_resource(WATCHED),
    }
    for method, request in requests.items():
        async with session.check(f"removed/{method}"):
            async with refusal(types.METHOD_NOT_FOUND):
                await request()


async def check_few_capabilities(report: Report, server: Server) -> None:
    """Clients that skip discovery and cannot do everything."""
    try:
        async with connected(report, server, REVISION, callbacks=("logging_callback",)) as session:
            async with session.check("without-discover"):
                equal(await session.text("test_simple_text"), "This is a simple text response for testing.", "text")
                equal(session.wire.sent[0]["method"], "tools/call", "first message")
            async with session.check("without-capability"):
                async with refusal(types.MISSING_REQUIRED_CLIENT_CAPABILITY) as caught:
                    await session.client.call_tool("test_missing_capability")
                equal(caught[0].data, {"requiredCapabilities": {"sampling": {}}}, "data")
        async with connected(report, server, REVISION, callbacks=("sampling_callback",)) as session:
            async with session.check("input/only-what-the-client-can"):
                tool = PREFIX + "capabilities"
                result = await session.client.session.call_tool(tool, allow_input_required=True)
                expect(isinstance(result, types.InputRequiredResult), "input was not required")
                methods = {request.method for request in (result.input_requests or {}).values()}
                equal(methods, {"sampling/createMessage"}, "requests")
    except Exception as error:
        report.fail(f"{REVISION}/few-capabilities", describe(error))


async def check_both_eras(report: Report, server: Server) -> None:
    """A client that probes and falls back does both on one pipe."""
    wire = server.wire()
    async with report.check("both-eras/discover-then-initialize", CONNECT_WAIT):
        async with wire.transport() as streams, ClientSession(*streams) as session:
            raw = await session.send_discover(REVISION)
            expect(REVISION in raw["supportedVersions"], "discover")
            result = await session.initialize()
            equal(result.protocol_version, "2025-11-25", "version")
            call = await session.call_tool("test_simple_text")
            expect(call.content, "no content")
    wire = server.wire()
    async with report.check("both-eras/refused-probe-then-initialize", CONNECT_WAIT):
        async with wire.transport() as streams, ClientSession(*streams) as session:
            try:
                await session.send_discover("2099-01-01")
            except MCPError as error:
                equal(error.code, types.UNSUPPORTED_PROTOCOL_VERSION, "code")
            result = await session.initialize()
            equal(result.protocol_version, "2025-11-25", "version")
            call = await session.call_tool("test_simple_text")
            expect(call.content, "no content")
