"""A batch file that bash runs without Slurm.

Stand-ins for `srun`, `scontrol` and `torchrun` only write down how they were called, which shows
what the file would start, and where. That a real Slurm takes it is tested in
tests/dist/test_slurm.py.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from manyhands.checks.ddp.answers import BatchRun, TorchrunCall

LIMIT_S = 30
# how long srun needs to start a command: a file that does not wait for it has ended before
RUNS_S = 0.3
# the stub of an answer in Python, and in a batch file
UNWRITTEN = "NotImplementedError", "# not written yet"
WITH_VALUE = (
    "-c|-G|-t|-p|-o|-e|-J|--gres|--gpus|--time|--output|--cpu-bind|--mpi|--export|"
    "--cpus-per-task|--gpus-per-node"
)

SRUN = f"""#!/bin/bash
nodes=$SLURM_NNODES tasks=$SLURM_NTASKS per_node= names=($STAND_IN_NAMES) first=0 last=-1 local=0
while [[ $1 == -* ]]; do
    case $1 in
        -N|--nodes) nodes=$2; shift;;
        -n|--ntasks) tasks=$2; shift;;
        --ntasks-per-node) per_node=$2; shift;;
        --nodes=*) nodes=${{1#*=}};;
        --ntasks=*) tasks=${{1#*=}};;
        --ntasks-per-node=*) per_node=${{1#*=}};;
        -N*) nodes=${{1#-N}};;
        -n*) tasks=${{1#-n}};;
        -w|--nodelist) first=$2; shift;;
        -r|--relative) first=$2; shift;;
        --nodelist=*|--relative=*) first=${{1#*=}};;
        -w*|-r*) first=${{1:2}};;
        {WITH_VALUE}) shift;;
    esac
    shift
done
sleep {RUNS_S}
[[ $per_node ]] && tasks=$((nodes * per_node))
((tasks < nodes)) && nodes=$tasks
for i in "${{!names[@]}}"; do [[ ${{names[i]}} == "${{first%%,*}}" ]] && first=$i; done
for ((task = 0; task < tasks; task++)); do
    node=$((task * nodes / tasks)) place=$((first + node))
    ((node == last)) && local=$((local + 1)) || local=0 last=$node
    SLURM_PROCID=$task SLURM_NODEID=$node SLURM_LOCALID=$local SLURMD_NODENAME=${{names[place]}} STAND_IN_NODE=$place "$@"
done
"""
SCONTROL = """#!/bin/bash
for name in $STAND_IN_NAMES; do
    case "$*" in *hostname*) echo "$name";; *) echo "NodeName=$name NodeAddr=$name State=ALLOCATED";; esac
done
"""
TORCHRUN = """#!/bin/bash
printf '%s\\x1f' "$([[ -e $STAND_IN_CALLS/../ended ]] && echo late)" "$STAND_IN_NODE" "$MASTER_ADDR" "$MASTER_PORT" "$@" > "$(mktemp "$STAND_IN_CALLS/XXXXXX")"
"""
PYTHON = """#!/bin/bash
[[ $1 == -u ]] && shift
if [[ $1 == -m && $2 == torch.distributed.run ]]; then shift 2; exec torchrun "$@"; fi
exec "$STAND_IN_PYTHON" "$@"
"""
HOSTNAME = """#!/bin/bash
names=($STAND_IN_NAMES); echo "${names[$STAND_IN_NODE]}"
"""
PROGRAMS = {
    "srun": SRUN,
    "scontrol": SCONTROL,
    "torchrun": TORCHRUN,
    "python": PYTHON,
    "python3": PYTHON,
    "hostname": HOSTNAME,
}


def run(text: str, seed: int, nodes: int | None = None) -> BatchRun:
    """What a batch file starts: `sbatch FILE`, or `sbatch --nodes=... FILE`.

    Plain numbers and words; the names of the nodes come from the seed.
    """
    import sys

    text = str(text)
    asked = directives(text)
    size = nodes or number(asked.get("nodes"), 1)
    # Slurm says that fewer tasks than nodes cannot be, and takes fewer nodes
    held = number(asked.get("ntasks"), size) < size
    size = number(asked["ntasks"], size) if held else size
    draw = random.Random(seed)
    names = [f"node{draw.randint(100, 899)}-{i}" for i in range(min(size, 8))]
    result: BatchRun = {
        "nodes": size,
        "wanted": nodes or 2,
        "names": names,
        "held": held,
        "calls": [],
        "output": "",
        "unwritten": any(mark in text for mark in UNWRITTEN),
    }
    if result["unwritten"]:
        return result
    per_node = number(asked.get("ntasks-per-node"), 1)
    tasks = number(asked.get("ntasks"), size * per_node)
    with tempfile.TemporaryDirectory(prefix="mh-") as folder:
        programs, calls = stand_ins(folder)
        job = {
            "JOB_ID": draw.randint(10000, 99999),
            "JOB_NUM_NODES": size,
            "NNODES": size,
            "JOB_NODELIST": ",".join(names),
            "NTASKS": tasks,
            "NTASKS_PER_NODE": per_node,
            "PROCID": 0,
            "NODEID": 0,
            "LOCALID": 0,
        }
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "MASTER_", "PORT"))
        }
        env |= {f"SLURM_{name}": str(value) for name, value in job.items()}
        env |= {
            "STAND_IN_NAMES": " ".join(names),
            "STAND_IN_NODE": "0",
            "STAND_IN_CALLS": str(calls),
            "STAND_IN_PYTHON": sys.executable,
            "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
        }
        Path(folder, "job.sbatch").write_text(text)
        try:
            done = subprocess.run(
                ["bash", "-c", "bash job.sbatch; touch ended"],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
            )
            result["output"] = (done.stderr or done.stdout).strip()[-300:] or "nothing"
        except subprocess.TimeoutExpired:
            result["output"] = f"nothing within {LIMIT_S} s"
        result["calls"] = sorted(
            (call(path.read_text()) for path in calls.iterdir()),
            key=lambda started: (started["node"], started["node_rank"], started["port"]),
        )
    return result


def stand_ins(folder: str) -> tuple[Path, Path]:
    """Write the programs, and an empty script, into a folder.

    Returns where they are, and where torchrun will leave a file for each call.
    """
    programs, calls = Path(folder, "bin"), Path(folder, "calls")
    programs.mkdir()
    calls.mkdir()
    for name, program in PROGRAMS.items():
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    Path(folder, "06_train.py").touch()
    return programs, calls


def directives(text: str) -> dict[str, str]:
    """{option: value} of the #SBATCH lines before the first command, as sbatch reads them."""
    options: dict[str, str] = {}
    short = {"-N": "nodes", "-n": "ntasks"}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if option := re.match(r"#SBATCH\s+(--[\w-]+|-\w)(?:[=\s]\s*|(?=\d))(\S+)", line):
            options[short.get(option[1], option[1].lstrip("-"))] = option[2]
    return options


def number(word: Any, otherwise: int) -> int:
    """A word as a whole number, or `otherwise` if it is none."""
    return int(word) if str(word).isdigit() else otherwise


def call(line: str) -> TorchrunCall:
    """One call of torchrun, with its node and its options.

    Each option has one name, whatever form it was written in.
    """
    late, node, _, _, *words = line.split("\x1f")[:-1]
    options: dict[str, str] = {}
    short = {"master-addr": "address", "master-port": "port"}
    while words and words[0].startswith("-"):
        name, equals, value = words.pop(0).lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not equals and name not in ("standalone", "no-python", "m"):
            value = words.pop(0) if words else ""
        options[short.get(name, name)] = value
    if endpoint := options.get("rdzv-endpoint"):
        options["address"], _, options["port"] = endpoint.partition(":")
    return {
        "node": int(node),
        "address": options.get("address", "127.0.0.1"),
        "port": options.get("port", "29500"),
        "nnodes": options.get("nnodes", "1"),
        "nproc": options.get("nproc-per-node", "1"),
        "node_rank": options.get("node-rank", "none"),
        "c10d": options.get("rdzv-backend") == "c10d",
        "script": plain(words),
        "late": bool(late),
    }


def plain(words: Sequence[str]) -> list[str]:
    """The script and its options in one form, `SCRIPT --option value`.

    For example, `./SCRIPT --option=value` is turned into it.
    """
    apart = [
        part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])
    ]
    return [*(word.removeprefix("./") for word in apart[:1]), *apart[1:]]
