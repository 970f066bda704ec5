"""Drives the tasks of a fixture server at 2025-11-25 with the client of `mcp` 1.x.

    python client.py COMMAND [ARGUMENT]...
"""

import sys
import warnings
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError

sys.path.append(str(Path(__file__).parent.parent / "python"))
from report import Report, equal, expect  # noqa: E402

# The package announces that its next major version has no tasks.
warnings.simplefilter("ignore", DeprecationWarning)

TOTAL = 60.0
"""Seconds after which the whole run has failed."""


async def elicited(_, params):
    if "x.txt" in params.message:
        return types.ErrorData(code=-32000, message="no form today")
    answers = {"confirm": True, "name": "Ada", "age": 36}
    wanted = params.requestedSchema["properties"]
    return types.ElicitResult(action="accept", content={key: answers[key] for key in wanted})


async def followed(session, name, arguments):
    """The result of a task, which is awaited as soon as it needs input or has ended; and its states."""
    created = await session.experimental.call_tool_as_task(name, arguments, ttl=30000)
    states = [created.task.status]
    async for state in session.experimental.poll_task(created.task.taskId):
        states.append(state.status)
        if state.status == "input_required":
            break
    result = await session.experimental.get_task_result(created.task.taskId, types.CallToolResult)
    return created.task, states, result


async def checks(session, report):
    async with report.check("capability"):
        tasks = (await session.initialize()).capabilities.tasks
        expect(tasks.cancel is not None and tasks.requests.tools.call is not None, f"{tasks}")
        expect(tasks.list is None, "a list without users")
    async with report.check("support"):
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        equal(tools["slow_compute"].execution.taskSupport, "optional", "slow_compute")
        equal(tools["failing_job"].execution.taskSupport, "required", "failing_job")
    async with report.check("result"):
        task, states, result = await followed(session, "slow_compute", {"seconds": 0.2, "label": "pi"})
        equal((states[0], states[-1], task.ttl), ("working", "completed", 30000), "states")
        equal(result.content[0].text, "computed pi in 0.2 s", "text")
        related = result.meta["io.modelcontextprotocol/related-task"]
        equal(related["taskId"], task.taskId, "related task")
    async with report.check("failure"):
        _, states, result = await followed(session, "failing_job", {})
        equal((states[-1], result.isError), ("failed", True), "states")
    async with report.check("error"):
        try:
            await followed(session, "protocol_error_job", {})
        except McpError as error:
            expect("an error of the protocol" in str(error), str(error))
        else:
            expect(False, "no error")
    async with report.check("elicitation"):
        _, _, result = await followed(session, "confirm_delete", {"filename": "a.txt"})
        equal(result.content[0].text, "deleted a.txt", "text")
    async with report.check("elicitations"):
        _, _, result = await followed(session, "multi_input", {})
        equal(result.content[0].text, "Ada is 36", "text")
    async with report.check("refused elicitation"):
        _, _, result = await followed(session, "confirm_delete", {"filename": "x.txt"})
        equal(result.isError, True, "isError")
        expect("no form today" in result.content[0].text, result.content[0].text)
    async with report.check("cancel"):
        created = await session.experimental.call_tool_as_task("slow_compute", {"seconds": 30})
        cancelled = await session.experimental.cancel_task(created.task.taskId)
        equal(cancelled.status, "cancelled", "status")
        equal((await session.experimental.get_task(created.task.taskId)).status, "cancelled", "status")
    async with report.check("unknown task"):
        try:
            await session.experimental.get_task("unknown")
        except McpError as error:
            equal(error.error.code, -32602, "code")
        else:
            expect(False, "no error")
    async with report.check("without a task"):
        result = await session.call_tool("slow_compute", {"seconds": 0, "label": "e"})
        equal(result.content[0].text, "computed e in 0 s", "text")


async def main():
    report = Report()
    with anyio.fail_after(TOTAL):
        parameters = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
        async with stdio_client(parameters) as (read, write):
            async with ClientSession(read, write, elicitation_callback=elicited) as session:
                await checks(session, report)
    print(f"{report.passed} checks passed")
    return 1 if report.failed else 0


sys.exit(anyio.run(main))
