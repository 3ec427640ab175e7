"""Machines on which a cluster cannot start, or only just.

The first kind gets a sentence within seconds, the second a cluster that works.
"""

import os
import subprocess
import sys
import time

import pytest
from our_processes import SLOWER, our_processes, wait_for_none

import needs

AT_ONCE_S = 3  # most of it is Python's start and its imports; a start of ranks takes longer
PROGRAM = """
from manyhands import Cluster
try:
    with Cluster(nodes=1, ranks_per_node=2, framework=None) as cluster:
        print(cluster.pull("6 * 7"))
except RuntimeError as error:
    print(type(error).__name__, error)
"""


def start(tmp_path, shell="true", unshare=False, **environment):
    """What a program with a cluster prints, and after how many seconds.

    It runs in a shell that has run `shell`.
    """
    program, before = tmp_path / "program.py", our_processes()
    program.write_text(PROGRAM)
    command = ["bash", "-c", f"set -e\n{shell}\nexec {sys.executable} {program}"]
    if unshare:
        command = [needs.program("unshare", "util-linux"), "-Urnm", *command]
        if subprocess.run([*command[:2], "true"], capture_output=True).returncode:
            needs.lacking("the right to make user namespaces", "see `manyhands doctor`")
    begun = time.monotonic()
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "FULL": str(tmp_path / "full"), **environment},
    )
    seconds = time.monotonic() - begun
    assert not wait_for_none(before, 10)
    return run.stdout + run.stderr, seconds


DISK = "mkdir $FULL; mount -t tmpfs -o size=400k t $FULL; ip link set lo up; export "


@pytest.mark.parametrize(
    "shell, unshare, words",
    [
        ("true", True, "This machine cannot connect to itself (127.0.0.1: Network is unreachable)"),
        (
            DISK + "TMPDIR=$FULL",
            True,
            "400 KiB are free there, but 6144 KiB are needed. Delete files",
        ),
        (DISK + "MANYHANDS_FOLDER=$FULL", True, "The cluster's files do not fit into"),
        (
            "export MANYHANDS_FOLDER=/nonexistent",
            False,
            (
                "A folder for the cluster's files cannot be made in /nonexistent: No such file or "
                "directory. Set the environment"
            ),
        ),
        (
            "ulimit -f 100",
            False,
            "no file may be larger than 100 KiB here. Run `ulimit -f unlimited`",
        ),
        ("ulimit -n 64", False, "only 64 files open here"),
    ],
    ids=["no loopback", "full disk", "full folder", "no folder", "small files", "few files"],
)
def test_what_is_missing_is_said_at_once(tmp_path, shell, unshare, words):
    output, seconds = start(tmp_path, shell, unshare)
    assert words in output and "Traceback" not in output and seconds < AT_ONCE_S * SLOWER, (
        output,
        seconds,
    )


def test_warnings_as_errors_hold_in_the_kernel_only(tmp_path):
    output, _ = start(tmp_path, PYTHONWARNINGS="error,default::ImportWarning")
    assert output.startswith(
        "PYTHONWARNINGS=error applies to this kernel but not to the ranks"
    ) and output.endswith("[42, 42]\n"), output


def test_odd_variables_change_nothing(tmp_path):
    long = tmp_path / ("x" * 120)  # a socket's path has 107 characters
    long.mkdir()
    output, _ = start(
        tmp_path,
        "unset HOME; export LANG=C LC_ALL=C",
        TMPDIR=str(long),
        RANK="3",
        WORLD_SIZE="9",
        LOCAL_RANK="2",
        MASTER_ADDR="10.0.0.1",
        MASTER_PORT="1",
        http_proxy="http://127.0.0.1:9",
        all_proxy="socks5://127.0.0.1:9",
        PYTHONPATH="/nonexistent",
        PYTHONSTARTUP="/nonexistent",
        PYTHONHASHSEED="7",
        IPYTHONDIR="/nonexistent/x",
        JUPYTER_RUNTIME_DIR="/nonexistent/y",
    )
    assert "[42, 42]\n" in output and "Traceback" not in output, output
