"""The interop server in Python with `mcp` 2.x: `--stdio`, `--http` or `--sse`. What it offers is in ../README.md."""

import asyncio
import os
import socket
import sys
import threading
import warnings
from itertools import count
from urllib.parse import unquote

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

# Roots, sampling and logging are what is to be tested.
warnings.simplefilter("ignore", MCPDeprecationWarning)

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
counter = 0
changes = InMemorySubscriptionBus()
# Sessions of legacy clients that subscribed, by the key of the connection.
subscribers = {}


def is_modern(context):
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection(context):
    """What tells connections apart; over stdio there is only one."""
    request = context.request
    return request and (request.headers.get("mcp-session-id") or request.query_params.get("session_id"))


def text(value, **more):
    return types.CallToolResult(content=[types.TextContent(text=str(value))], **more)


async def add(_, params):
    total = params.arguments["a"] + params.arguments["b"]
    return text(total, structured_content={"sum": total})


async def fail(*_):
    return text("as asked", is_error=True)


async def slow(context, params):
    steps = params.arguments["steps"]
    for step in range(steps):
        await asyncio.sleep(0.02)
        await context.session.report_progress(step + 1, steps)
    return text("done")


async def wait(*_):
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled", file=sys.stderr, flush=True)
        raise
    return text("waited")


async def ask(context, params):
    form = types.ElicitRequestFormParams(message="Who are you?", requested_schema=PERSON)
    if not is_modern(context):
        answer = await context.session.elicit_form(form.message, PERSON, related_request_id=context.request_id)
    elif params.input_responses:
        answer = params.input_responses["person"]
    else:
        return types.InputRequiredResult(input_requests={"person": types.ElicitRequest(params=form)})
    if answer.action == "accept":
        return text(f"accepted {answer.content['name']} {answer.content.get('age', 'missing')}")
    return text("declined" if answer.action == "decline" else "cancelled")


async def sample(context, params):
    messages = [types.SamplingMessage(role="user", content=types.TextContent(text="Say something."))]
    if not is_modern(context):
        answer = await context.session.create_message(
            messages, max_tokens=100, related_request_id=context.request_id
        )
    elif params.input_responses:
        answer = params.input_responses["said"]
    else:
        question = types.CreateMessageRequestParams(messages=messages, max_tokens=100)
        return types.InputRequiredResult(input_requests={"said": types.CreateMessageRequest(params=question)})
    return text(answer.content.text)


async def roots(context, params):
    if not is_modern(context):
        # The package has no way to link this to the call: over HTTP it is asked on the GET stream.
        answer = await context.session.list_roots()
    elif params.input_responses:
        answer = params.input_responses["roots"]
    else:
        return types.InputRequiredResult(input_requests={"roots": types.ListRootsRequest()})
    return text(" ".join(str(root.uri) for root in answer.roots))


async def log(context, _):
    await context.session.send_log_message("info", "hello log", related_request_id=context.request_id)
    return text("logged")


async def touch(context, _):
    global counter
    counter += 1
    await changes.publish(ResourceUpdated(COUNTER))
    await changes.publish(ToolsListChanged())
    for session in list(subscribers.values()):
        await session.send_resource_updated(COUNTER)
    if not is_modern(context):
        await context.session.send_tool_list_changed()
    return text(counter)


async def drop(context, _):
    if context.close_sse_stream:
        await context.close_sse_stream()
    return text("resumed")


NOTHING = {"type": "object", "properties": {}}
STEPS = {"type": "object", "properties": {"steps": {"type": "integer"}}, "required": ["steps"]}
TERMS = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}
SUM = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
TOOLS = {tool.__name__: tool for tool in (add, fail, slow, wait, ask, sample, roots, log, touch, drop)}


async def list_tools(*_):
    def tool(name):
        schema = {"add": TERMS, "slow": STEPS}.get(name, NOTHING)
        return types.Tool(name=name, input_schema=schema, output_schema=SUM if name == "add" else None)

    return types.ListToolsResult(tools=[tool(name) for name in TOOLS])


async def call_tool(context, params):
    return await TOOLS[params.name](context, params)


async def list_resources(*_):
    names = {"hello": "test://hello", "counter": COUNTER}
    return types.ListResourcesResult(resources=[types.Resource(name=name, uri=uri) for name, uri in names.items()])


async def list_resource_templates(*_):
    echo = types.ResourceTemplate(name="echo", uri_template="test://echo/{text}")
    return types.ListResourceTemplatesResult(resource_templates=[echo])


async def read_resource(_, params):
    match params.uri.removeprefix("test://").split("/"):
        case ["hello"]:
            content = "hello"
        case ["counter"]:
            content = str(counter)
        case ["echo", echoed]:
            content = unquote(echoed)
        case _:
            raise ValueError(f"no resource {params.uri}")
    contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=content)
    return types.ReadResourceResult(contents=[contents])


async def subscribe(context, _):
    subscribers[connection(context)] = context.session
    return types.EmptyResult()


async def unsubscribe(context, _):
    subscribers.pop(connection(context), None)
    return types.EmptyResult()


async def list_prompts(_, params):
    start = int(params.cursor) if params and params.cursor else 0
    end = start + 2
    return types.ListPromptsResult(
        prompts=PROMPTS[start:end], next_cursor=str(end) if end < len(PROMPTS) else None
    )


async def get_prompt(_, params):
    name = (params.arguments or {}).get("name")
    said = {"greet": f"Hello, {name}!", "plain": "plain", "third": "third"}[params.name]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=types.TextContent(text=said))])


async def complete(_, params):
    is_name = (getattr(params.ref, "name", None), params.argument.name) == ("greet", "name")
    values = [name for name in NAMES if is_name and name.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


async def set_logging_level(*_):
    return types.EmptyResult()


class Interop(Server):
    def create_initialization_options(self, *_):
        return super().create_initialization_options(NotificationOptions(tools_changed=True))


server = Interop(
    "interop",
    version="2.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_resource_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(changes),
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_logging_level,
)


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
    return server.streamable_http_app(event_store=Events(), retry_interval=10)


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
