"""A server with tasks of 2025-11-25, made with `mcp` 1.x, on standard input and output."""

import warnings

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

# The package announces that its next major version has no tasks.
warnings.simplefilter("ignore", DeprecationWarning)

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
server = Server("tasks", "1.0.0")
server.experimental.enable_tasks()


def text(value):
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def render(task):
    await task.update_status("rendering")
    await anyio.sleep(0.3)
    return text("rendered")


async def ask(task):
    answer = await task.elicit("Who are you?", NAME)
    return text(f"{answer.action} {(answer.content or {}).get('name')}")


async def broken(_):
    raise RuntimeError("no paper")


async def endless(_):
    await anyio.sleep(60)
    return text("never")


TOOLS = {tool.__name__: tool for tool in (render, ask, broken, endless)}


@server.list_tools()
async def list_tools():
    execution = types.ToolExecution(taskSupport="required")
    return [types.Tool(name=name, inputSchema={"type": "object"}, execution=execution) for name in TOOLS]


@server.call_tool()
async def call_tool(name, _):
    context = server.request_context
    context.experimental.validate_task_mode("required")
    return await context.experimental.run_task(TOOLS[name])


async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
