"""The application around the client: answers what servers ask, and remembers what they told."""

from __future__ import annotations

from typing import Any

import mcp_types as types

SAMPLED = "an answer of the interop model"
ROOTS = ["file:///interop/one", "file:///interop/two"]


class Host:
    def __init__(self) -> None:
        self.logged: list[types.LoggingMessageNotificationParams] = []
        self.sampled: list[types.CreateMessageRequestParams] = []
        self.elicited: list[Any] = []
        self.roots_listed = 0
        self.action = "accept"
        """What the user does with the next forms."""

    def callbacks(self, *names: str) -> dict[str, Any]:
        """Arguments for a client; a client declares a capability if it has the callback for it."""
        every = {
            "sampling_callback": self._sample,
            "elicitation_callback": self._elicit,
            "list_roots_callback": self._list_roots,
            "logging_callback": self._log,
        }
        return {name: every[name] for name in names or every}

    async def _sample(self, _: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.sampled.append(params)
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(text=SAMPLED),
            model="interop-model",
            stop_reason="endTurn",
        )

    async def _elicit(self, _: Any, params: Any) -> types.ElicitResult:
        self.elicited.append(params)
        if self.action != "accept":
            return types.ElicitResult(action=self.action)
        return types.ElicitResult(action="accept", content=filled(params.requested_schema))

    async def _list_roots(self, _: Any) -> types.ListRootsResult:
        self.roots_listed += 1
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=uri[-3:]) for uri in ROOTS])

    async def _log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append(params)


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """A form filled in: the default of each field, else something that can be recognised."""
    return {name: _field(name, field) for name, field in schema["properties"].items()}


def _field(name: str, field: dict[str, Any]) -> Any:
    if "default" in field:
        return field["default"]
    if field["type"] == "array":
        items = field["items"]
        return [items["enum"][0] if "enum" in items else items["anyOf"][0]["const"]]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    if "enum" in field:
        return field["enum"][0]
    if field.get("format") == "email":
        return "interop@example.com"
    return {"boolean": True, "integer": 7, "number": 1.5, "string": f"interop-{name}"}[field["type"]]
