"""Drives a fixture server over stdio with the official Python client, revision by revision.

    python drive.py [--revision R]... -- COMMAND [ARGUMENT]...
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

TOTAL = 120.0
"""Seconds after which the whole run has failed."""


def main() -> int:
    if "--" not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index("--")
    command = sys.argv[split + 1 :]
    revisions = [*legacy.REVISIONS, modern.REVISION]
    parser = argparse.ArgumentParser(description="Drives a fixture server over stdio.")
    parser.add_argument("--revision", action="append", choices=revisions, help="only this one; may be repeated")
    wanted = parser.parse_args(sys.argv[1:split]).revision or revisions
    if not command:
        parser.error("the command of the server is missing after --")

    report = Report()
    # The last resort, should even the way out hang.
    watchdog = threading.Timer(TOTAL + 20, os._exit, [1])
    watchdog.daemon = True
    watchdog.start()
    anyio.run(drive, report, command, wanted)
    watchdog.cancel()
    if report.failed:
        print(f"{report.failed} checks failed")
    print(f"{report.passed} checks passed")
    return 1 if report.failed or not report.passed else 0


async def drive(report: Report, command: list[str], revisions: list[str]) -> None:
    with anyio.move_on_after(TOTAL) as limit:
        for revision in revisions:
            if revision == modern.REVISION:
                await modern.drive(report, command)
            else:
                await legacy.drive(report, command, revision)
        if legacy.REVISIONS[-1] in revisions:
            await legacy.check_counter_offer(report, command)
    if limit.cancelled_caught:
        report.fail("total-time", f"not done within {TOTAL:g} s")


if __name__ == "__main__":
    sys.exit(main())
