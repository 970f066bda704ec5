"""Named checks, each printed as one line: `ok`, `FAIL` or `n/a`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

WAIT = 5.0
"""Seconds that one check may take unless it says otherwise."""

LONGEST = 500
"""Characters of a reason that are printed."""


class Mismatch(Exception):
    """The server did something else than expected."""


def expect(condition: object, why: str) -> None:
    if not condition:
        raise Mismatch(why)


def equal(actual: object, expected: object, what: str) -> None:
    expect(actual == expected, f"{what}: expected {expected!r}, got {actual!r}")


async def until(condition: Callable[[], object]) -> None:
    """Waits for the condition; the check around it limits how long."""
    while not condition():
        await anyio.sleep(0.01)


class Report:
    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self._names: set[str] = set()

    @asynccontextmanager
    async def check(self, name: str, wait: float = WAIT) -> AsyncIterator[None]:
        """The body is the check: it passes unless it raises or takes too long."""
        try:
            with anyio.fail_after(wait):
                yield
        except Exception as error:
            self.fail(name, f"nothing within {wait:g} s" if isinstance(error, TimeoutError) else describe(error))
        else:
            self.ok(name)

    def ok(self, name: str) -> None:
        self._once(name)
        self.passed += 1
        print(f"ok {name}", flush=True)

    def fail(self, name: str, why: str) -> None:
        self._once(name)
        self.failed += 1
        print(f"FAIL {name}: {why}", flush=True)

    def not_available(self, name: str, why: str) -> None:
        self._once(name)
        print(f"n/a {name}: {why}", flush=True)

    def _once(self, name: str) -> None:
        if name in self._names:
            raise RuntimeError(f"two checks are named {name}")
        self._names.add(name)


def describe(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())[:LONGEST]
    return text if isinstance(error, Mismatch) else f"{type(error).__name__}: {text}"
