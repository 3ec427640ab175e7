"""docs/HANGS.md: each of its programs is run on two ranks, and says what stands below it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import needs
from manyhands.cluster.launch.run_script import launch

PAGE = Path(__file__).parents[2] / "docs" / "HANGS.md"
PROGRAMS = re.findall(
    r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```", PAGE.read_text(), re.M | re.S
)
# each in its program
WAYS = ("faulthandler", "py-spy", "monitored_barrier", "TORCH_DISTRIBUTED_DEBUG", "_dump_fr_trace")


def may_look():
    """Leave the test out where this machine lets no process look into another."""
    spy = needs.search("py-spy") or needs.lacking("py-spy", "make setup")
    looked = subprocess.run(
        [spy, "dump", "--pid", str(os.getpid())], capture_output=True, text=True
    )
    if looked.returncode:
        needs.lacking(
            "the right to look into a process",
            f"run as root, or allow ptrace: {looked.stderr.strip()}",
        )


def test_every_program_has_what_it_says():
    assert (
        len(PROGRAMS)
        == PAGE.read_text().count("```python")
        == PAGE.read_text().count("```text")
        == len(WAYS)
    )
    assert all(way in program for way, (program, _) in zip(WAYS, PROGRAMS, strict=True))


@pytest.mark.parametrize("program, wanted", PROGRAMS, ids=WAYS)
def test_a_program_that_hangs_says_what_the_page_promises(
    program, wanted, tmp_path, monkeypatch, warm
):
    # of py-spy
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if "py-spy" in program:
        may_look()
    (tmp_path / "train.py").write_text(program)
    done = launch(
        tmp_path / "train.py",
        nodes=1,
        ranks_per_node=2,
        timeout_s=90,
        python=sys.executable if "os.environ" in program else warm,
        echo=False,
    )
    assert not done.timed_out
    output = done.output[0]
    for line in wanted.splitlines():
        at = output.find(line)
        assert at >= 0, (line, done.output)
        output = output[at:]
