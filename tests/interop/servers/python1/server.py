"""The interop server in Python with `mcp` 1.x: `--stdio`, `--http` or `--sse`. What it offers is in ../README.md."""

import asyncio
import os
import socket
import sys
import threading
from itertools import count
from urllib.parse import unquote
from weakref import WeakSet

import uvicorn
from mcp import types
from mcp.server.fastmcp.server import StreamableHTTPASGIApp
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

COUNTER = "test://counter"
NAMES = ["alice", "albert", "bob"]
PROMPTS = [
    types.Prompt(name="greet", arguments=[types.PromptArgument(name="name", required=True)]),
    types.Prompt(name="plain"),
    types.Prompt(name="third"),
]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 30}},
    "required": ["name"],
}


class Interop(Server):
    def create_initialization_options(self, *_):
        options = super().create_initialization_options(NotificationOptions(tools_changed=True))
        # The package never declares this, even if there is a handler.
        options.capabilities.resources.subscribe = True
        return options


server = Interop("interop", "1.0.0")
counter = 0
subscribers = WeakSet()


def text(value, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(value))], **more)


async def add(arguments):
    total = arguments["a"] + arguments["b"]
    return text(total, structuredContent={"sum": total})


async def fail(_):
    return text("as asked", isError=True)


async def slow(arguments):
    context = server.request_context
    token = context.meta and context.meta.progressToken
    for step in range(arguments["steps"]):
        await asyncio.sleep(0.02)
        if token is not None:
            await context.session.send_progress_notification(
                token, step + 1, arguments["steps"], related_request_id=str(context.request_id)
            )
    return text("done")


async def wait(_):
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled", file=sys.stderr, flush=True)
        raise
    return text("waited")


async def ask(_):
    context = server.request_context
    answer = await context.session.elicit_form("Who are you?", PERSON, related_request_id=context.request_id)
    if answer.action == "accept":
        return text(f"accepted {answer.content['name']} {answer.content.get('age', 'missing')}")
    return text("declined" if answer.action == "decline" else "cancelled")


async def sample(_):
    context = server.request_context
    question = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say something."))
    answer = await context.session.create_message([question], max_tokens=100, related_request_id=context.request_id)
    return text(answer.content.text)


async def roots(_):
    # The package has no way to link this to the call: over HTTP it is asked on the GET stream.
    answer = await server.request_context.session.list_roots()
    return text(" ".join(str(root.uri) for root in answer.roots))


async def log(_):
    context = server.request_context
    await context.session.send_log_message("info", "hello log", related_request_id=context.request_id)
    return text("logged")


async def touch(_):
    global counter
    counter += 1
    for session in list(subscribers):
        await session.send_resource_updated(AnyUrl(COUNTER))
    await server.request_context.session.send_tool_list_changed()
    return text(counter)


async def drop(_):
    close = server.request_context.close_sse_stream
    if close:
        await close()
    return text("resumed")


NOTHING = {"type": "object", "properties": {}}
STEPS = {"type": "object", "properties": {"steps": {"type": "integer"}}, "required": ["steps"]}
TERMS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
SUM = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
TOOLS = {tool.__name__: tool for tool in (add, fail, slow, wait, ask, sample, roots, log, touch, drop)}


@server.list_tools()
async def list_tools():
    return [
        types.Tool(
            name=name,
            inputSchema={"add": TERMS, "slow": STEPS}.get(name, NOTHING),
            outputSchema=SUM if name == "add" else None,
        )
        for name in TOOLS
    ]


@server.call_tool()
async def call_tool(name, arguments):
    return await TOOLS[name](arguments)


@server.list_resources()
async def list_resources():
    return [types.Resource(name="hello", uri="test://hello"), types.Resource(name="counter", uri=COUNTER)]


@server.list_resource_templates()
async def list_resource_templates():
    return [types.ResourceTemplate(name="echo", uriTemplate="test://echo/{text}")]


@server.read_resource()
async def read_resource(uri):
    match str(uri).removeprefix("test://").split("/"):
        case ["hello"]:
            content = "hello"
        case ["counter"]:
            content = str(counter)
        case ["echo", echoed]:
            content = unquote(echoed)
        case _:
            raise ValueError(f"no resource {uri}")
    return [ReadResourceContents(content, "text/plain")]


@server.subscribe_resource()
async def subscribe(_):
    subscribers.add(server.request_context.session)


@server.unsubscribe_resource()
async def unsubscribe(_):
    subscribers.discard(server.request_context.session)


@server.list_prompts()
async def list_prompts(request: types.ListPromptsRequest) -> types.ListPromptsResult:
    start = int(request.params.cursor) if request.params and request.params.cursor else 0
    end = start + 2
    return types.ListPromptsResult(
        prompts=PROMPTS[start:end], nextCursor=str(end) if end < len(PROMPTS) else None
    )


@server.get_prompt()
async def get_prompt(name, arguments):
    said = {"greet": f"Hello, {(arguments or {}).get('name')}!", "plain": "plain", "third": "third"}[name]
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=said))
    return types.GetPromptResult(messages=[message])


@server.completion()
async def complete(ref, argument, _):
    known = NAMES if isinstance(ref, types.PromptReference) and (ref.name, argument.name) == ("greet", "name") else []
    return types.Completion(values=[name for name in known if name.startswith(argument.value)])


@server.set_logging_level()
async def set_logging_level(_):
    pass


class Events(EventStore):
    """What was sent on all streams, for clients that come back."""

    def __init__(self):
        self.numbers = count(1)
        self.events = {}

    async def store_event(self, stream_id, message):
        number = next(self.numbers)
        self.events[number] = (stream_id, message)
        return str(number)

    async def replay_events_after(self, last_event_id, send_callback):
        stream, _ = self.events[int(last_event_id)]
        for number, (of, message) in list(self.events.items()):
            if of == stream and number > int(last_event_id) and message:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def serve_stdio():
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def http():
    # Clients that were cut off come back after 10 ms.
    manager = StreamableHTTPSessionManager(server, event_store=Events(), retry_interval=10)
    return Starlette(routes=[Route("/mcp", StreamableHTTPASGIApp(manager))], lifespan=lambda _: manager.run())


def sse():
    transport = SseServerTransport("/messages/")

    async def endpoint(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", endpoint), Mount("/messages/", transport.handle_post_message)])


def serve(app, path):
    def end_with_input():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end_with_input, daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/{path}", flush=True)
    # To uvicorn, each stream that a client leaves is an error.
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


match sys.argv[1:]:
    case ["--stdio"]:
        asyncio.run(serve_stdio())
    case ["--http"]:
        serve(http(), "mcp")
    case ["--sse"]:
        serve(sse(), "sse")
    case _:
        sys.exit("--stdio, --http or --sse")
