"""`manyhands predict` on scripts that run here.

The batch, a machine that a user describes, a core that is missing, a failure.
"""

import os
import subprocess
import sys
import textwrap

import pytest

BLOCKED = (
    "tensorflow",
    "tf_keras",
    "keras",
    "horovod",
    "ipyparallel",
    "zmq",
    "tornado",
    "traitlets",
    "IPython",
    "ipykernel",
    "jupyter_client",
    "jupyter_core",
    "nbformat",
    "nbconvert",
    "nbclient",
    "lightning",
    "mpi4py",
    "py_spy",
    "argcomplete",
)
BLOCKER = f"""
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, path=None, target=None: None if name in {BLOCKED!r} else find(name, path, target)
"""
TRAINS = """
    import os, subprocess, sys, time, torch, torch.distributed as dist
    if "--data" in sys.argv:
        raise FileNotFoundError("no such data: " + sys.argv[-1])
    dist.init_process_group("gloo")
    rows, model = torch.randn(64 // dist.get_world_size(), 4), torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    if "--busy" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    for step in range(10):
        until = time.process_time() + 0.05
        while "--busy" in sys.argv and time.process_time() < until:
            pass
        time.sleep(0.1)
        optimizer.zero_grad()
        model(rows).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
"""
MACHINE = """
    gpus = 4
    inside = { latency_s = 5e-6, bytes_per_s = 20e9 }
    between = { latency_s = 1e-5, bytes_per_s = 1e9 }
"""


@pytest.fixture
def predict(tmp_path):
    """Run the command where no other package of the course can be imported.

    Neither the command nor a rank can import it.
    """
    (tmp_path / "absent").mkdir()
    (tmp_path / "absent" / "sitecustomize.py").write_text(BLOCKER)
    (tmp_path / "train.py").write_text(textwrap.dedent(TRAINS))
    (tmp_path / "mine.toml").write_text(textwrap.dedent(MACHINE))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "absent")}

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "manyhands", "predict", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def test_a_script_that_divides_its_batch_on_a_machine_of_ones_own(predict, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # it is left out of the copy
    done = predict("train.py", "--to", "8,64,128", "--machine", "mine.toml", "--all-reduce", "auto")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " pipe." in done.stdout
    # 8 weights and 2 biases
    assert "Sums in a step: 2, 4e-05 MB, after the backward pass." in done.stdout
    assert (
        "Rows in a step: 64 with one rank, 32 on each of 2 ranks. It is assumed that the global "
        "batch of 64 rows stays the same" in done.stdout
    )
    assert (
        "less than one row: 128 ranks." in done.stdout
        and "mine; 70% of its links' rates" in done.stdout
    )
    assert "each sum by the fastest of rings, trees and switches that add" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert [line[0] for line in lines] == ["ranks", "8", "64"]
    # the 100 ms here are taken to shrink with the rows
    assert float(lines[2][1]) < float(lines[1][1]) < 50
    assert "<svg" in (tmp_path / "prediction.svg").read_text()


def test_a_rank_that_waited_for_a_core_gives_no_prediction(predict, tmp_path):
    done = predict("train.py", "--", "--busy")
    assert done.returncode == 3 and done.stdout == "", done.stdout + done.stderr
    assert (
        "had to wait for a core for" in done.stderr
        and "Nothing is predicted from that." in done.stderr
    )
    assert not (tmp_path / "prediction.svg").exists()


def test_a_failure_is_told_with_its_reason_and_with_the_scripts_arguments(predict):
    done = predict("--as-it-is", "-m", "train", "--", "--data", "my data")
    assert (
        done.returncode == 2
        and "manyhands predict: With 2 ranks, no step of train.py could be timed. Rank"
        in done.stderr
    ), done.stderr
    assert done.stderr.endswith(
        "failed: FileNotFoundError: no such data: my data\n"
        "The whole report: manyhands clinic --ranks 2 --as-it-is -m train -- --data 'my data'\n"
    ), done.stderr


def test_an_import_of_ours_that_fails_is_not_blamed_on_the_script(predict, tmp_path):
    (tmp_path / "absent" / "sitecustomize.py").write_text(
        BLOCKER.replace(repr(BLOCKED), "('manyhands.ledger.taps',)")
    )
    done = predict("train.py")
    assert done.returncode == 2 and done.stderr.startswith(
        "manyhands predict: ImportError: cannot import name 'taps'"
    ), done.stderr
    assert done.stderr.endswith("The script is not the cause.\n")
