"""Drives a fixture server with the official Python client, revision by revision.

    python drive.py [--revision R]... -- COMMAND [ARGUMENT]...    over stdio, one process for each connection
    python drive.py [--revision R]... --url URL                   over HTTP; legacy clients have no sessions
    python drive.py [--revision R]... --url URL --sessions        over HTTP; legacy clients have sessions
"""

from __future__ import annotations

import argparse
import os
import sys
import threading

import anyio

import legacy
import modern
from report import Report
from wire import Server

TOTAL = 120.0
"""Seconds after which the whole run has failed."""


def main() -> int:
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    revisions = [*legacy.REVISIONS, modern.REVISION]
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--revision", action="append", choices=revisions, help="only this one; may be repeated")
    parser.add_argument("--url", default="")
    parser.add_argument("--sessions", action="store_true")
    options = parser.parse_args(sys.argv[1:split])
    wanted = options.revision or revisions
    server = Server(sys.argv[split + 1 :], options.url, options.sessions)
    if bool(server.command) == bool(server.url):
        parser.error("either a URL or, after --, the command of the server is needed")

    report = Report()
    # The last resort, should even the way out hang.
    watchdog = threading.Timer(TOTAL + 20, os._exit, [1])
    watchdog.daemon = True
    watchdog.start()
    anyio.run(drive, report, server, wanted)
    watchdog.cancel()
    if report.failed:
        print(f"{report.failed} checks failed")
    print(f"{report.passed} checks passed")
    return 1 if report.failed or not report.passed else 0


async def drive(report: Report, server: Server, revisions: list[str]) -> None:
    with anyio.move_on_after(TOTAL) as limit:
        for revision in revisions:
            if revision == modern.REVISION:
                await modern.drive(report, server)
            else:
                await legacy.drive(report, server, revision)
        if legacy.REVISIONS[-1] in revisions:
            await legacy.check_counter_offer(report, server)
    if limit.cancelled_caught:
        report.fail("total-time", f"not done within {TOTAL:g} s")


if __name__ == "__main__":
    sys.exit(main())
