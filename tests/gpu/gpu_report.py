"""The report of a visit: OUT/report.json, all that is known, and OUT/report.md, for people."""

import json
import os
import platform
import subprocess
import sys
from datetime import datetime, timezone

MARKS = {
    "passed": "passed",
    "failed": "FAILED",
    "lacking": "not possible here",
    "stopped": "STOPPED at its limit",
}
LAST_LINES = 200  # of a failed item's output in report.md; report.json and the item's log have all


def load(out):
    """The report in OUT, or a new one with this machine's facts."""
    path = out / "report.json"
    if path.exists():
        return json.loads(path.read_text())
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        **machine(),
        "items": {},
    }


def machine():
    """Device, driver and versions, asked of nvidia-smi and of PyTorch.

    A machine without a GPU is called a stand-in.
    """
    asked = (
        "import json, torch; c = torch.cuda.is_available(); print(json.dumps({'torch': "
        "torch.__version__, 'cuda': torch.version.cuda if c else None, 'nccl': '.'.join(map(str, "
        "torch.cuda.nccl.version())) if c else None, 'device': torch.cuda.get_device_name(0) if c "
        "else None, 'devices': torch.cuda.device_count() if c else 0}))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    facts = (
        json.loads(done.stdout.splitlines()[-1])
        if done.returncode == 0
        else {"torch": done.stderr[-500:]}
    )
    try:
        smi = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
        )
        driver = smi.stdout.strip() if smi.returncode == 0 else None
    except (OSError, subprocess.SubprocessError):
        driver = None
    device = facts.get("device") or "none: a stand-in, all on the CPU"
    return {
        **facts,
        "device": device,
        "driver": driver,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def waiting(report, names):
    """The items that no run has reached or that the end of a run has cut short."""
    items = report["items"]
    return [
        name
        for name in names
        if name not in items
        or (items[name]["status"] == "stopped" and not items[name]["whole_limit"])
    ]


def write(report, out, names):
    """Write both files, each in one rename."""
    for name, text in (
        ("report.json", json.dumps(report, indent=1)),
        ("report.md", markdown(report, names)),
    ):
        new = out / f"{name}.new"
        new.write_text(text + "\n")
        os.replace(new, out / name)


def markdown(report, names):
    lines = [
        "# What ran on the GPU",
        "",
        f"{report['date']}. Device: {report['device']}"
        + (f" ({report['driver']})" if report["driver"] else "")
        + f". PyTorch {report['torch']}, CUDA {report.get('cuda')}, NCCL {report.get('nccl')}, "
        f"Python {report['python']}, {report['cores']} cores.",
        "",
        "| item | came out | seconds | what |",
        "|---|---|---|---|",
    ]
    for name in names:
        item = report["items"].get(name)
        if item is None:
            lines.append(f"| {name} | not reached | | |")
        else:
            lines.append(
                f"| {name} | {MARKS[item['status']]} | {item['seconds']} | {item['what']} |"
            )
    cut = [name for name in waiting(report, names) if name in report["items"]]
    if cut:
        lines += ["", f"Cut short by the end of a run: {', '.join(cut)}."]
    for name in names:
        lines += _of_item(report["items"].get(name))
    return "\n".join(lines)


def _of_item(item):
    if item is None:
        return []
    lines = ["", f"## {item['name']}", ""]
    if item["figures"]:
        lines += ["| figure | value |", "|---|---|"]
        lines += [
            f"| {line['figure']} | {line['value']} {line.get('unit', '')} |"
            for line in item["figures"]
        ]
    for line in item["failures"]:
        lines += ["", f"**{line['failure']}**", "", "```text", *line["text"].splitlines(), "```"]
    if item["status"] == "lacking":
        lines.append(item["output"].strip().splitlines()[-1])
    elif item["status"] != "passed":
        lines += [
            "",
            "The end of what it printed:",
            "",
            "```text",
            *item["output"].splitlines()[-LAST_LINES:],
            "```",
        ]
    return lines
