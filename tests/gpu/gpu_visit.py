"""Run the items that have not been run, and write the report.

`python -m gpu_visit OUT SECONDS [ITEM ...]`
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu_report
from gpu_plan import ITEMS, NOTHING

LEAST_S = 15  # less is not worth beginning an item
STOP_S = 5  # for a stopped item to end what it has started


def run(item, out, limit_s):
    """Run one item for `limit_s` seconds at most; returns its record for the report.

    `status` is "passed", "failed", "lacking" (this machine lacks something) or "stopped" (its time
    was over). `figures` and `failures` are what it told with `gpu_tell.py` before it ended, however
    it ended.
    """
    log, facts_path = out / f"{item.name}.log", out / f"{item.name}.told"
    facts_path.unlink(missing_ok=True)
    begun = time.monotonic()
    with open(log, "wb") as output, tempfile.TemporaryDirectory(prefix="gpu-") as scratch:
        process = subprocess.Popen(
            item.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "GPU_TOLD": str(facts_path),
                "GPU_SECONDS": str(limit_s),
                "GPU_SCRATCH": scratch,
                "PYTHONUNBUFFERED": "1",
            },
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    lines = facts_path.read_text().splitlines() if facts_path.exists() else []
    facts = [json.loads(line) for line in lines]
    failures = [fact for fact in facts if "failure" in fact]
    status = (
        "stopped"
        if code is None
        else "lacking"
        if code == NOTHING
        else "passed"
        if code == 0
        else "failed"
    )
    text = log.read_text(errors="replace")
    return {
        "name": item.name,
        "what": item.what,
        "status": status,
        "seconds": round(time.monotonic() - begun, 1),
        "limit_s": round(limit_s, 1),
        "whole_limit": limit_s >= item.limit_s,
        "figures": [fact for fact in facts if "figure" in fact],
        "failures": failures,
        "output": text[-100_000:],
    }


def _end(process):
    """End an item and its process group: first asked, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def visit(out, seconds, only=(), items=None):
    """Run what is not in OUT/report.json yet, until `seconds` are over; returns the report.

    An item whose time was cut short by the end of a run is begun anew by the next one.
    """
    begun, out = time.monotonic(), Path(out)
    items = ITEMS if items is None else items
    unknown = set(only) - {item.name for item in items}
    if unknown:
        raise SystemExit(
            f"there is no item {', '.join(sorted(unknown))}: there are "
            f"{', '.join(item.name for item in items)}"
        )
    out.mkdir(parents=True, exist_ok=True)
    report = gpu_report.load(out)
    for item in items:
        before = report["items"].get(item.name)
        if (
            item.name not in only
            if only
            else before and (before["status"] != "stopped" or before["whole_limit"])
        ):
            continue
        left = seconds - (time.monotonic() - begun) - 2 * STOP_S
        if left < min(LEAST_S, item.limit_s):
            break
        print(f"{item.name}: {item.what} (at most {min(left, item.limit_s):.0f} s)", flush=True)
        report["items"][item.name] = record = run(item, out, min(left, item.limit_s))
        gpu_report.write(report, out, [planned.name for planned in items])
        print(f"    {record['status']} after {record['seconds']} s", flush=True)
    gpu_report.write(report, out, [planned.name for planned in items])
    return report


def main(out, seconds, *only):
    report = visit(out, float(seconds), only)
    waiting = gpu_report.waiting(report, [item.name for item in ITEMS])
    if waiting:
        print(f"Not reached: {', '.join(waiting)}. Type the same line again to go on.")
    print(f"The report: {Path(out) / 'report.md'}")
    return int(any(item["status"] in ("failed", "stopped") for item in report["items"].values()))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
