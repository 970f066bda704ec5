"""One connection under test, and the checks that hold in every revision."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.shared.exceptions import MCPError

from host import SAMPLED, Host
from report import WAIT, Report, equal, expect, until
from wire import Http, Pipe, Wire

FIXTURE = json.loads((Path(__file__).parent.parent / "fixture.json").read_text())
WATCHED = "test://watched-resource"
QUIET = 0.3
"""Seconds after which something that should not come counts as not coming."""

CONNECT_WAIT = 10.0
"""Seconds for each request that no check limits, such as the opening of a connection."""


@dataclass
class Session:
    report: Report
    revision: str
    era: str
    client: Client
    wire: Wire
    host: Host
    tools: list[types.Tool] = field(default_factory=list)

    def check(self, name: str, wait: float = WAIT) -> AbstractAsyncContextManager[None]:
        return self.report.check(f"{self.revision}/{name}", wait)

    def not_available(self, name: str, why: str) -> None:
        self.report.not_available(f"{self.revision}/{name}", why)

    def expected(self, kind: str) -> list[str]:
        return FIXTURE[kind]["both"] + FIXTURE[kind][self.era]

    async def call(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> types.CallToolResult:
        result = await self.client.call_tool(name, arguments, **options)
        expect(not result.is_error, f"{name} failed: {text_of(result)}")
        return result

    async def text(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
        return text_of(await self.call(name, arguments, **options))


def text_of(result: types.CallToolResult) -> str:
    return " ".join(block.text for block in result.content if isinstance(block, types.TextContent))


def answered(error: MCPError) -> None:
    """The package also raises what no server sent: the end of the connection, or of the time for an answer."""
    if error.code in (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT):
        raise error


@asynccontextmanager
async def refusal(code: int | None = None) -> AsyncIterator[list[MCPError]]:
    """Expects the body to end in an error response (with the code)."""
    caught: list[MCPError] = []
    try:
        yield caught
    except MCPError as error:
        answered(error)
        caught.append(error)
        if code is not None:
            equal(error.code, code, "code")
        return
    expect(False, "the server answered with a result, not with an error")


async def check_lists(session: Session) -> None:
    client = session.client
    listed: dict[str, list[str]] = {}
    async with session.check("tools/list"):
        session.tools = await every_page(client.list_tools, "tools")
        listed["tool"] = check_names([tool.name for tool in session.tools], session.expected("tools"))
        for tool in session.tools:
            expect(tool.description, f"{tool.name} has no description")
            equal(tool.input_schema.get("type"), "object", f"{tool.name} inputSchema.type")
    async with session.check("prompts/list"):
        prompts = await every_page(client.list_prompts, "prompts")
        listed["prompt"] = check_names([prompt.name for prompt in prompts], session.expected("prompts"))
        expect(all(prompt.description for prompt in prompts), "a prompt has no description")
        arguments = next(p for p in prompts if p.name == "test_prompt_with_arguments").arguments or []
        equal([(a.name, a.required) for a in arguments], [("arg1", True), ("arg2", True)], "arguments")
    async with session.check("resources/list"):
        resources = await every_page(client.list_resources, "resources")
        listed["resource"] = check_names([str(resource.uri) for resource in resources], FIXTURE["resources"])
    async with session.check("resources/templates/list"):
        templates = await every_page(client.list_resource_templates, "resource_templates")
        listed["template"] = check_names([template.uri_template for template in templates], FIXTURE["templates"])
    for kind, names in listed.items():
        for name in names:
            session.not_available(f"{kind}/{name}", "listed, but not among what this script knows for this revision")


async def every_page(fetch: Callable[..., Awaitable[Any]], member: str) -> list[Any]:
    items: list[Any] = []
    cursor = None
    while True:
        page = await fetch(cursor=cursor)
        items += getattr(page, member)
        cursor = page.next_cursor
        if cursor is None:
            return items


def check_names(listed: list[str], expected: list[str]) -> list[str]:
    """Returns what is listed beyond what is expected."""
    missing = sorted(set(expected) - set(listed))
    expect(not missing, f"not listed: {', '.join(missing)}")
    equal(len(listed), len(set(listed)), "number of different names")
    return sorted(set(listed) - set(expected))


async def check_tools(session: Session) -> None:
    async with session.check("tool/test_simple_text"):
        equal(await session.text("test_simple_text"), "This is a simple text response for testing.", "text")
    async with session.check("tool/test_simple_text-empty-arguments"):
        equal(await session.text("test_simple_text", {}), "This is a simple text response for testing.", "text")
    async with session.check("tool/test_image_content"):
        (block,) = (await session.call("test_image_content")).content
        equal((block.type, block.mime_type), ("image", "image/png"), "block")
        expect(block.data, "no data")
    if session.revision == "2024-11-05":
        async with session.check("tool/test_audio_content-refused"):
            try:
                result = await session.client.call_tool("test_audio_content")
            except MCPError as error:
                answered(error)
            else:
                expect(all(block.type != "audio" for block in result.content), "audio does not exist in this revision")
    else:
        async with session.check("tool/test_audio_content"):
            (block,) = (await session.call("test_audio_content")).content
            equal((block.type, block.mime_type), ("audio", "audio/wav"), "block")
            expect(block.data, "no data")
    async with session.check("tool/test_embedded_resource"):
        (block,) = (await session.call("test_embedded_resource")).content
        equal(str(block.resource.uri), "test://embedded-resource", "uri")
        equal(block.resource.mime_type, "text/plain", "mimeType")
        equal(block.resource.text, "This is an embedded resource content.", "text")
    async with session.check("tool/test_multiple_content_types"):
        blocks = (await session.call("test_multiple_content_types")).content
        equal([block.type for block in blocks], ["text", "image", "resource"], "kinds of content")
        equal(str(blocks[2].resource.uri), "test://mixed-content-resource", "uri")
    async with session.check("tool/test_error_handling"):
        result = await session.client.call_tool("test_error_handling")
        expect(result.is_error and text_of(result), "expected isError and a text")
    async with session.check("tool/json_schema_2020_12_tool"):
        arguments = {
            "name": "interop",
            "address": {"street": "a", "city": "b"},
            "contactMethod": "phone",
            "phone": "1",
        }
        expect(await session.text("json_schema_2020_12_tool", arguments), "no text")
    if session.revision >= "2025-11-25":
        async with session.check("tool/json_schema_2020_12_tool-schema"):
            schema = next(tool.input_schema for tool in session.tools if tool.name == "json_schema_2020_12_tool")
            equal(schema.get("$schema"), "https://json-schema.org/draft/2020-12/schema", "$schema")
            equal(schema["$defs"]["address"]["$anchor"], "addressDef", "$anchor")
            equal(schema["properties"]["address"], {"$ref": "#/$defs/address"}, "$ref")
            equal(schema["additionalProperties"], False, "additionalProperties")
            expect({"allOf", "if", "then", "else"} <= schema.keys(), "a keyword was lost")
    else:
        session.not_available("tool/json_schema_2020_12_tool-schema", "this dialect is the default since 2025-11-25")
    async with session.check("tool/unknown"):
        async with refusal(types.INVALID_PARAMS):
            await session.client.call_tool("no_such_tool")
    async with session.check("tool/concurrent-calls"):
        done: list[str] = []

        async def slow() -> None:
            await session.text("test_slow", {"seconds": 1})
            done.append("slow")

        async def quick() -> None:
            await session.text("test_simple_text")
            done.append("quick")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            for _ in range(5):
                tasks.start_soon(quick)
        equal(done, ["quick"] * 5 + ["slow"], "order of the answers")


async def check_asking(session: Session) -> None:
    """Tools that ask in every era from one source: what comes of it is the same, only the way of the questions differs."""
    host, wire = session.host, session.wire
    elicit, sample = "elicitation/create", "sampling/createMessage"

    async def ask(tool: str, rounds: list[dict[str, str]], arguments: dict[str, Any] | None = None) -> Any:
        """`rounds` has the questions by key, as the modern era groups them."""
        host.elicited.clear()
        host.sampled.clear()
        sent, received = len(wire.sent), len(wire.received)
        result = await session.client.call_tool(tool, arguments)
        asked = [m["method"] for m in wire.received[received:] if "method" in m and "id" in m]
        interim = [m["result"] for m in wire.received[received:] if "inputRequests" in m.get("result", {})]
        calls = [m for m in wire.sent[sent:] if m.get("method") == "tools/call"]
        if session.era == "legacy":
            equal(sorted(asked), sorted(method for one in rounds for method in one.values()), "requests of the server")
            equal((len(calls), interim), (1, []), "calls and interim results")
        else:
            shown = [{key: question["method"] for key, question in one["inputRequests"].items()} for one in interim]
            equal((shown, asked), (rounds, []), "questions and requests of the server")
            states = [call["params"].get("requestState") for call in calls]
            equal(states, [None, *(one["requestState"] for one in interim)], "states that were sent back")
        return result

    async with session.check("ask/one-by-one"):
        result = await ask("test_ask_both_eras", [{"name": elicit}, {"colour": elicit}], {"call": "one-by-one"})
        equal(text_of(result), "interop-name likes interop-colour; steps taken: 1", "text")
        messages = ["What is your name?", "What is your favourite colour, interop-name?"]
        equal([form.message for form in host.elicited], messages, "forms that the client got")
    async with session.check("ask/two-at-once"):
        result = await ask("test_ask_two_at_once", [{"name": elicit, "greeting": sample}])
        equal(text_of(result), f"interop-name: {SAMPLED}", "text")
        equal((len(host.elicited), len(host.sampled)), (1, 1), "questions that the client got")
    for action, why in {"decline": "the user declined", "cancel": "the user cancelled"}.items():
        async with session.check(f"ask/{action}"):
            host.action = action
            try:
                result = await ask("test_ask_both_eras", [{"name": elicit}], {"call": action})
            finally:
                host.action = "accept"
            equal((result.is_error, text_of(result)), (True, why), "result")


async def check_prompts(session: Session) -> None:
    client = session.client
    async with session.check("prompt/test_simple_prompt"):
        messages = (await client.get_prompt("test_simple_prompt")).messages
        expect(messages and messages[0].content.text, "no text")
    async with session.check("prompt/test_prompt_with_arguments"):
        arguments = {"arg1": "first-value", "arg2": "second-value"}
        messages = (await client.get_prompt("test_prompt_with_arguments", arguments)).messages
        text = " ".join(message.content.text for message in messages)
        expect("first-value" in text and "second-value" in text, f"an argument is missing in {text!r}")
    async with session.check("prompt/test_prompt_with_embedded_resource"):
        arguments = {"resourceUri": "test://example-resource"}
        messages = (await client.get_prompt("test_prompt_with_embedded_resource", arguments)).messages
        blocks = [message.content for message in messages if message.content.type == "resource"]
        equal([str(block.resource.uri) for block in blocks], ["test://example-resource"], "embedded resources")
    async with session.check("prompt/test_prompt_with_image"):
        messages = (await client.get_prompt("test_prompt_with_image")).messages
        images = [message.content for message in messages if message.content.type == "image"]
        equal([image.mime_type for image in images], ["image/png"], "images")
    async with session.check("prompt/unknown"):
        async with refusal(types.INVALID_PARAMS):
            await client.get_prompt("no_such_prompt")


async def check_resources(session: Session) -> None:
    client = session.client
    async with session.check("resource/static-text"):
        (contents,) = (await client.read_resource("test://static-text")).contents
        equal((str(contents.uri), contents.mime_type), ("test://static-text", "text/plain"), "contents")
        expect(contents.text, "no text")
    async with session.check("resource/static-binary"):
        (contents,) = (await client.read_resource("test://static-binary")).contents
        equal((str(contents.uri), contents.mime_type), ("test://static-binary", "image/png"), "contents")
        expect(contents.blob, "no blob")
    async with session.check("resource/template"):
        (contents,) = (await client.read_resource("test://template/interop-42/data")).contents
        equal(str(contents.uri), "test://template/interop-42/data", "uri")
        expect("interop-42" in contents.text, "the id is not in the text")
    async with session.check("resource/watched"):
        (contents,) = (await client.read_resource(WATCHED)).contents
        equal(str(contents.uri), WATCHED, "uri")
    async with session.check("resource/unknown"):
        code = types.INVALID_PARAMS if session.era == "modern" else -32002
        async with refusal(code) as caught:
            await client.read_resource("test://no-such-resource")
        if session.era == "modern":
            equal((caught[0].data or {}).get("uri"), "test://no-such-resource", "data.uri")


async def check_completion(session: Session) -> None:
    async with session.check("completion"):
        reference = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        result = await session.client.complete(reference, {"name": "arg1", "value": "test"})
        expect(len(result.completion.values) <= 100, "more than 100 values")


async def check_progress(session: Session) -> None:
    seen: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, _: str | None) -> None:
        seen.append((progress, total))

    async with session.check("progress/test_tool_with_progress"):
        await session.call("test_tool_with_progress", progress_callback=note)
        await until(lambda: len(seen) >= 3)
        equal(seen, [(0, 100), (50, 100), (100, 100)], "progress")
    async with session.check("progress/monotonic"):
        seen.clear()
        await session.call("test_slow", {"seconds": 0.5}, progress_callback=note)
        expect(len(seen) >= 3, f"expected at least 3 notifications, got {len(seen)}")
        values = [progress for progress, _ in seen]
        expect(values == sorted(set(values)), f"not increasing: {values}")
    async with session.check("progress/only-if-asked"):
        mark = len(session.wire.received)
        await session.call("test_tool_with_progress")
        equal(session.wire.notifications("notifications/progress", mark), [], "notifications")


async def check_cancellation(session: Session) -> None:
    wire = session.wire
    async with session.check("cancellation/stops-the-tool"):
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
        await anyio.sleep(QUIET)  # what was under way may still arrive
        mark = len(wire.received)
        await anyio.sleep(QUIET)
        equal(wire.notifications("notifications/progress", mark), [], "progress after the cancellation")
        # The package makes up an answer where a stream ends that it cannot come back for.
        made_up = "SSE stream ended without a response"
        answers = [a for a in wire.answers(request_id) if a.get("error", {}).get("message") != made_up]
        equal(answers, [], "answers to the cancelled request")
        await check_nothing_under_way(session)
    async with session.check("cancellation/session-still-works"):
        equal(await session.text("test_simple_text"), "This is a simple text response for testing.", "text")


async def check_nothing_under_way(session: Session) -> None:
    """Slow calls that were given up have ended, here or on other connections to the same server; a moment later at most."""
    while not (await session.text("test_slow", {"seconds": 0})).endswith("others under way: 0"):
        await anyio.sleep(0.05)


async def check_complaints(session: Session) -> None:
    """Not to be called after a cancellation: what was under way then may be complained of."""
    async with session.check("client-complains-of-nothing"):
        equal(session.wire.complaints, [], "complaints")


async def check_wire(session: Session) -> None:
    """To be called before the connection is closed, and after everything else."""
    wire = session.wire
    if isinstance(wire, Http):
        await check_http(session, wire)
    else:
        async with session.check("stdout-has-only-messages"):
            equal(wire.faults, [], "other lines")


async def check_http(session: Session, wire: Http) -> None:
    async with session.check("http/only-messages"):
        equal(wire.faults, [], "faults")
    has_session = session.era == "legacy" and not wire.is_stateless
    async with session.check("http/session" if has_session else "http/no-session"):
        headers = [headers for r in wire.responses for headers in (r.headers, r.request.headers)]
        ids = {h["mcp-session-id"] for h in headers if "mcp-session-id" in h}
        equal(len(ids), int(has_session), "ids of sessions")
    async with session.check("http/statuses"):
        expected = {200, 400, 404} if session.era == "modern" else {200, 202}
        equal({r.status_code for r in wire.responses if r.request.method == "POST"}, expected, "statuses")
    async with session.check("http/media-types"):
        types = {r.headers.get("content-type") for r in wire.responses if r.status_code == 200}
        equal(types, {"application/json", "text/event-stream"}, "types")
    async with session.check("http/versions"):
        initialize = wire.responses[0].request if session.era == "legacy" else None
        versions = {r.request.headers.get("mcp-protocol-version") for r in wire.responses if r.request is not initialize}
        equal(versions - {"2099-01-01"}, {session.revision}, "versions in headers")


def check_wire_closed(session: Session) -> None:
    """To be called when the connection is closed."""
    if not isinstance(session.wire, Pipe):
        return
    name = f"{session.revision}/exit-at-end-of-input"
    if session.wire.killed:
        why = "the server had to be killed, it did not exit within 2 s of the end of its input"
        session.report.fail(name, why)
    else:
        session.report.ok(name)
