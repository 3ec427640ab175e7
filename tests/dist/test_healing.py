"""Healing after ranks and a controller die between or in cells.

It is also stopped by the stop button at each step.
"""

import os
import signal
import textwrap
import threading

import psutil
import pytest
from our_processes import SLOWER, our_processes, wait_for_none

from manyhands import Cluster
from manyhands.cluster import ControllerDied, Fault, Interrupted, RankDied, RankError
from manyhands.cluster.engines.local import LocalEngines
from manyhands.cluster.engines.runtime import Runtime
from manyhands.cluster.faults.watch import Watch


@pytest.fixture(scope="module")
def plain():
    """Two ranks without a framework: a new set of processes is there in a second."""
    before = our_processes()
    with Cluster(nodes=1, ranks_per_node=2, framework=None, name="plain") as cluster:
        cluster.px("import os\nrank = int(os.environ['RANK'])", setup=True)
        yield cluster
    assert not wait_for_none(before, 10)


def failing(cluster, code):
    """Run a cell that must fail; the fault."""
    with pytest.raises(Fault) as caught:
        cluster.px(textwrap.dedent(code))
    return caught.value


def controller_of(cluster):
    return cluster._runtime._ipp_cluster.controller.pid


def killed(pid):
    """Kill, and return when it has ended."""
    process = psutil.Process(pid)
    process.kill()
    psutil.wait_procs([process], timeout=10)


def once(monkeypatch, owner, step, act):
    """Have `act()` called when `step` next begins."""
    original = getattr(owner, step)

    def acting(*args, **kwargs):
        monkeypatch.setattr(owner, step, original)
        act()
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, step, acting)


def press_stop():
    os.kill(os.getpid(), signal.SIGINT)


def test_a_rank_killed_between_two_cells_is_told_as_that(cluster):
    """Its record of the cell before must not be compared with the other ranks' calls."""
    cluster.px("kept = torch.ones(4)\ndist.all_reduce(kept)")
    killed(cluster.run(os.getpid)[1])
    fault = failing(cluster, "dist.broadcast(torch.ones(2), 0)\ndist.barrier()")
    assert type(fault) is RankDied and fault.culprits == [1], fault.text
    assert "rank 1  died before this cell began: killed by signal 9 (SIGKILL)" in fault.text
    assert "Lost on all ranks: kept." in fault.text
    cluster.px("dist.barrier()")


def test_a_rank_killed_as_a_cell_is_sent_is_told_as_that(cluster, monkeypatch):
    cluster.px("dist.all_reduce(torch.ones(4))")
    pid = cluster.run(os.getpid)[2]
    once(monkeypatch, Runtime, "submit", lambda: os.kill(pid, signal.SIGKILL))
    fault = failing(cluster, "dist.barrier()")
    assert type(fault) is RankDied and fault.culprits == [2], fault.text
    assert " died before this cell began: killed by signal 9 (SIGKILL)" in fault.text
    cluster.px("dist.barrier()")


@pytest.mark.parametrize(
    "words", ["quit()", "exit", "import sys; sys.exit()", "get_ipython().ask_exit()"]
)
def test_quit_on_a_rank_is_told_where_it_stands(plain, words):
    pids = plain.run(os.getpid)
    fault = failing(plain, words)
    assert type(fault) is RankError and fault.culprits == [0, 1], fault.text
    assert f"ranks 0, 1  raised SystemExit at line 1 of this cell: {words}" in fault.text
    assert "on a rank they end only the cell" in fault.text
    assert plain.run(os.getpid) == pids


def test_a_function_that_exits_is_told_and_does_not_end_its_rank(plain):
    def leave():
        raise SystemExit(3)

    pids = plain.run(os.getpid)
    with pytest.raises(RankError) as caught:
        plain.run(leave)
    assert "raised SystemExit: 3 at line" in caught.value.text
    assert plain.run(os.getpid) == pids


def test_the_controller_killed_in_a_cell_is_told_and_healed_in_that_cell(plain):
    plain.px("kept = 1")
    threading.Timer(0.5, os.killpg, (controller_of(plain), signal.SIGKILL)).start()
    fault = failing(plain, "import time\ntime.sleep(60)")
    assert type(fault) is ControllerDied and fault.reported_s - 0.5 < 2 * SLOWER
    assert (
        "The cluster's controller was lost.\n  ranks 0, 1  compute at line 2 of this cell: "
        "time.sleep(60)" in fault.text
    )
    assert "Lost on all ranks: kept." in fault.text and "brought back: rank." in fault.text
    assert plain.pull("rank") == [0, 1]


def engines_of(cluster):
    return sorted(child.pid for child in psutil.Process(cluster._runtime._engines.group).children())


def test_after_the_stop_button_in_a_healing_the_next_cell_heals_first(plain, monkeypatch, capsys):
    plain.px("kept = 1")
    once(monkeypatch, LocalEngines, "kill", press_stop)
    with pytest.raises(
        Interrupted,
        match="STOPPED while the cluster was being healed. The next cell heals it first.",
    ):
        plain.heal()
    capsys.readouterr()
    plain.px("print(rank)")
    printed = capsys.readouterr().out
    assert (
        "The cluster is healed: 2 new ranks.\n" in printed
        and "Lost on all ranks: kept. " in printed
        and "brought back: rank." in printed
    )
    assert printed.endswith("[rank 0] 0\n[rank 1] 1\n")


STEPS = [
    (LocalEngines, "_wait_registered"),
    (LocalEngines, "stop"),
    (Runtime, "_stop_controller"),
    (Runtime, "start"),
    (LocalEngines, "_make_ready"),
    (Runtime, "submit"),
    (Watch, "_collect"),
]


def test_stopped_at_every_step_of_a_healing_the_next_cell_heals_first(plain, monkeypatch, capsys):
    plain.px("kept = 1")
    killed(engines_of(plain)[0])
    before = our_processes()
    for owner, step in STEPS:
        once(monkeypatch, owner, step, press_stop)
        with pytest.raises(Interrupted):
            plain.px("never = 1")
    capsys.readouterr()
    assert plain.pull("rank") == [0, 1]
    assert "Lost on all ranks: kept. " in capsys.readouterr().out
    now = our_processes()
    # the killed one is there again, and nothing of the healings between
    assert len(now) == len(before) + 1, (before, now)


def test_a_cell_stopped_before_its_ranks_were_ended_is_healed_by_the_next(
    plain, monkeypatch, capsys
):
    """Pressed quickly, the stop button also stops what makes the report."""
    monkeypatch.setattr("manyhands.cluster.faults.explain.make_fault", lambda *args: press_stop())
    with pytest.raises(KeyboardInterrupt):
        plain.px(
            "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except "
            "KeyboardInterrupt:\n        pass",
            limit_s=0.5,
        )
    monkeypatch.undo()
    assert plain.pull("rank") == [0, 1]
    assert "The cluster is healed: 2 new ranks." in capsys.readouterr().out


def test_what_cannot_be_sent_loses_nothing(plain):
    plain.px("kept = 2")
    with pytest.raises(Exception, match="pickle"):
        plain.run(print, threading.Lock())
    assert plain.pull("kept") == [2, 2]


UNKIND = {
    "class Silent(Exception):\n    def __str__(self):\n        raise ValueError('no')\nraise Silent()": (
        "raised Silent: (its message cannot be shown, because __str__ raised ValueError) at line 4"
    ),
    "raise ValueError('a\\ud800b')": "raised ValueError: a\\ud800b at line 1",
    "raise ValueError('x' * 5_000_000)": "x ... (5000000 characters) at line 1",
    "class Shy:\n    def __repr__(self):\n        raise ValueError('no repr')\nShy()": (
        "raised ValueError: no repr at line 3"
    ),
    "class Mute:\n    def __getattribute__(self, name):\n        raise RuntimeError(name)\nmute = Mute()\n1 / 0": (
        "raised ZeroDivisionError: division by zero at line 5"
    ),
    "import signal\nos.kill(os.getpid(), signal.SIGRTMIN + 6)\nimport time; time.sleep(5)": (
        "killed by signal 40 (SIGRTMIN+6)"
    ),
}


@pytest.mark.parametrize("code", UNKIND)
def test_what_cannot_be_shown_is_told_all_the_same(plain, code):
    fault = failing(plain, code)
    assert "ranks 0, 1" in fault.text and UNKIND[code] in fault.text, fault.text[:500]
    assert len(fault.text) < 100_000
    assert plain.pull("rank") == [0, 1]


def test_a_second_thread_is_told_that_the_cluster_is_at_work(plain, monkeypatch):
    refused = []

    def use():
        with pytest.raises(RuntimeError) as caught:
            plain.heal()
        refused.append(str(caught.value))

    def in_a_thread():
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()

    once(monkeypatch, Watch, "run", in_a_thread)
    assert plain.pull("rank") == [0, 1]
    assert refused == [
        "The cluster 'plain' is busy with another thread of this notebook. Wait until that has "
        "finished."
    ]


def test_a_process_of_the_controller_killed_alone_is_the_controller_killed(plain):
    killed(psutil.Process(controller_of(plain)).children()[0].pid)
    fault = failing(plain, "1")
    assert type(fault) is ControllerDied and "This cell has not run." in fault.text
    assert plain.pull("rank") == [0, 1]


def test_a_setup_cell_that_breaks_the_ranks_when_it_runs_again_is_left_out_and_told(
    plain, tmp_path
):
    plain.px(
        f"import os\nif os.path.exists({str(tmp_path / 'again')!r}):\n    os._exit(3)\nmade = 1",
        setup=True,
    )
    (tmp_path / "again").touch()
    fault = failing(plain, "os._exit(1)")
    assert (
        "A cell marked --setup failed when it was run again: Ranks 0, 1 died\nHealing does not run "
        "it again" in fault.text
    )
    assert (
        "The cluster is healed: 2 new ranks." in fault.text
        and "brought back: rank." in fault.text
        and len(plain._recovery.setups) == 1
    )
    assert plain.pull("rank") == [0, 1]
    assert (
        "made is not defined on the ranks: the cell marked --setup that makes it, which begins with"
        " `import os`" in failing(plain, "made").text
    )
    plain.px("made = 2")
    assert plain.pull("made") == [2, 2]


def test_a_setup_cell_that_is_held_up_when_it_runs_again_has_a_second_try(
    plain, tmp_path, monkeypatch
):
    busy = str(tmp_path / "busy")
    plain.px(
        f"import os, time\nif rank == 0 and os.path.exists({busy!r}):\n    os.remove({busy!r})\n   "
        " time.sleep(60)\nslow = 1",
        setup=True,
    )
    (tmp_path / "busy").touch()
    monkeypatch.setattr(plain, "limit_s", 3)
    fault = failing(plain, "os._exit(1)")
    assert (
        "brought back: rank, slow." in fault.text
        and "failed" not in fault.text
        and len(plain._recovery.setups) == 2
    )
    assert plain.pull("slow") == [1, 1]
    plain._recovery.setups.pop()
