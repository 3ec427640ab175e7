"""A rehearsal of cells on a cluster, and of a script by the command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from manyhands.cluster.faults.kinds import RankError
from manyhands.cluster.host.ports import reserve
from manyhands.ledger import taps

SCRIPTS = Path(__file__).parents[2] / "sources" / "scripts"
RING = """import torch, torch.distributed as dist
x, y = torch.ones(4), torch.empty(4)
rank, size = dist.get_rank(), dist.get_world_size()
work = dist.isend(x, (rank + 1) % size)
dist.recv(y, (rank - 1) % size)
work.wait()"""


def test_a_cell_that_gloo_runs_and_nccl_would_not(cluster, capsys):
    with cluster.rehearse() as rehearsal:
        cluster.px(RING)
    printed = capsys.readouterr().out
    assert [(finding.severity, finding.ranks, finding.line) for finding in rehearsal.findings] == [
        ("hangs", (rank,), 4) for rank in range(4)
    ]
    assert (
        printed.count("HANGS") == 1
        and "HANGS: line 4 of this cell, ranks 0, 1, 2, 3" in printed
        and "send first on one side" in printed
    )
    assert rehearsal.picture is not None and rehearsal.picture.text.count(">isend<") == 4


def test_findings_of_all_ranks_are_one_and_cells_are_told_apart(cluster, capsys):
    with cluster.rehearse() as rehearsal:
        cluster.px(
            "import torch, torch.distributed as dist\nz = torch.ones(3)\nwork = dist.all_reduce(z, "
            "async_op=True)"
        )
        cluster.px("total = z.sum()\nwork.wait()")
    (finding,) = rehearsal.findings
    assert (finding.severity, finding.ranks, finding.call) == ("differs", (0, 1, 2, 3), "sum")
    assert "DIFFERS: line 1 of this cell, ranks 0, 1, 2, 3" in capsys.readouterr().out


def test_nothing_is_left_on_the_ranks(cluster):
    def taps_there():
        import time

        import torch
        import torch.distributed as dist
        import torch.utils._python_dispatch

        import manyhands.ledger.taps as listened

        return (
            len(listened._open),
            hasattr(time.time, "__wrapped__"),
            hasattr(torch.Tensor.item, "__wrapped__"),
            getattr(dist, "_manyhands_rehearsal", None) is None,
            len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()),
        )

    before = cluster.run(taps_there)
    with cluster.rehearse():
        cluster.px("import torch, torch.distributed as dist\ndist.all_reduce(torch.ones(1))")
        assert cluster.run(taps_there) != before
    assert cluster.run(taps_there) == before == [(0, False, False, True, 0)] * 4
    assert not taps._open


def test_a_cell_that_raises_is_told_as_ever_and_not_judged(cluster, capsys):
    with pytest.raises(RankError), cluster.rehearse() as rehearsal:
        cluster.px("1 / 0")
    assert rehearsal.findings == [] and "No findings" not in capsys.readouterr().out
    with cluster.rehearse() as rehearsal:
        cluster.px("import torch, torch.distributed as dist\ndist.all_reduce(torch.ones(1))")
    assert rehearsal.findings == [] and sum(map(len, rehearsal.traces.values())) == 4


def test_two_at_once_are_refused(cluster):
    with cluster.rehearse(), pytest.raises(RankError, match="Ranks 0-3 raised"):
        cluster.rehearse().__enter__()


def rehearse(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "manyhands", "rehearse", *arguments], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_a_script_is_judged_and_the_exit_code_says_whether_something_was_found(script, tmp_path):
    path = script(
        f"import torch.distributed as dist\ndist.init_process_group('nccl')\n{RING}\nimport "
        "sys\nassert sys.argv[1:] == ['--epochs', '1']\n"
    )
    code, out, _ = rehearse(
        str(path),
        "--ranks",
        "2",
        "--json",
        "--flight-record",
        str(tmp_path / "record"),
        "--",
        "--epochs",
        "1",
    )
    judged = json.loads(out)
    assert (
        code == 1
        and judged["errors"] == {}
        and [finding["severity"] for finding in judged["findings"]] == ["hangs"] * 2
    )
    assert {(finding["file"], finding["line"]) for finding in judged["findings"]} == {
        ("train.py", 6)
    }
    read = subprocess.run(
        [Path(sys.executable).with_name("torchfrtrace"), tmp_path / "record", "--prefix", "rank_"],
        capture_output=True,
        text=True,
    )
    assert (
        read.returncode == 0
        and "collective: nccl:send 0->1" in read.stderr
        and "train.py:6" in read.stderr
    ), read
    assert rehearse(str(path), "--flight-record", str(tmp_path))[0] == 2, (
        "a folder that holds something is left alone"
    )


def test_the_courses_own_training_is_clean():
    code, out, _ = rehearse(str(SCRIPTS / "06_train.py"), "--ranks", "2", "--", "--epochs", "1")
    assert code == 0 and "No findings in 18 calls of collectives" in out, out


def test_a_script_that_fails_is_shown_with_its_error_and_not_judged(script):
    code, out, _ = rehearse(
        str(
            script(
                "import torch.distributed as dist\ndist.init_process_group('gloo')\nraise "
                "KeyError('mine')\n"
            )
        ),
        "--ranks",
        "2",
    )
    assert (
        code == 2
        and "failed by itself, so nothing was judged" in out
        and "KeyError: 'mine'" in out
        and "findings" not in out
    )


def test_what_gloo_aborts_is_judged_by_what_the_ranks_had_called(script):
    """Rank 0 ends by SIGABRT, the others lose their connection."""
    sizes = (
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\nx = "
        "torch.ones([7, 9, 9][dist.get_rank()], 4)\ndist.all_reduce(x)\n"
    )
    code, out, _ = rehearse(str(script(sizes)), "--ranks", "3")
    assert (
        code == 1
        and "With gloo, too, rank 0 could not continue, because gloo ended it. op.preamble" in out
    ), out
    assert (
        "MAY HANG: train.py:4, rank 0\n" in out
        and "meets all_reduce of rank 1 (line 4), which has a different size" in out
    ), out


NO_GPU_CHOSEN = """import contextlib, torch, torch.distributed as dist  # only line 10 calls torch.cuda.set_device(local_rank)
torch.cuda.is_available = lambda: True  # so that the calls count that are made, and not those that are written
dist.init_process_group("nccl")
scores, size = [None] * 2, 2
dist.all_gather_object(scores, 1)
dist.barrier()
dist.barrier(device_ids=[0])
parts = [torch.empty(3)] * size
dist.all_gather(parts, torch.ones(3))
with contextlib.suppress(AttributeError, RuntimeError): torch.cuda.set_device(0)
dist.barrier()
dist.all_gather_object(scores, 1)
dist.all_gather([torch.empty(3) for _ in range(size)], torch.ones(3))
"""


def test_what_counts_are_calls_that_choose_a_gpu_and_tensors_that_are_the_same(script):
    code, out, _ = rehearse(str(script(NO_GPU_CHOSEN)), "--ranks", "2", "--json")
    assert code == 1 and {
        (finding["line"], finding["severity"], finding["call"])
        for finding in json.loads(out)["findings"]
    } == {
        (5, "may hang", "all_gather_object"),
        (6, "may hang", "barrier"),
        (9, "differs", "all_gather"),
        (13, "fails", "all_gather"),
    }, out  # the last one only because its tensors are on the CPU


def test_a_worker_of_tensorflow_that_waits_in_c_is_told_with_its_line(script):
    """It holds Python's lock, and so can neither report nor answer."""
    with reserve() as free:
        path = script(f"""import json, os
if os.environ["RANK"] == "1":
    os.environ["TF_CONFIG"] = json.dumps({{"cluster": {{"worker": ["127.0.0.1:1", "127.0.0.1:{free.ports[0]}"]}}, "task": {{"type": "worker", "index": 1}}}})
    import tensorflow as tf
    tf.distribute.MultiWorkerMirroredStrategy()
""")
        code, out, _ = rehearse(str(path), "--ranks", "2", "--patience", "2")
    assert (
        code == 1
        and "rank 1  waits in MultiWorkerMirroredStrategy at line 5 of train.py: tf.distribute"
        in out
    ), out
    assert (
        "must start before rank 1 can go on, and no rank has set its own TF_CONFIG to worker 0."
        in out
    ), out


def test_a_run_that_was_cut_is_not_a_clean_one(script):
    code, out, _ = rehearse(
        str(script("import time\ntime.sleep(60)")), "--ranks", "2", "--limit", "2"
    )
    assert (
        code == 3
        and "Not determined, because the script had not ended" in out
        and "No findings" not in out
    ), out


def test_what_is_no_script_is_said():
    code, _, err = rehearse("no_such.py")
    assert (
        code == 2
        and err.startswith("manyhands rehearse: there is no file no_such.py in ")
        and "Traceback" not in err
    )


def test_one_tensor_for_all_ranks_is_told_in_a_cell_and_in_its_rehearsal(cluster, capsys):
    with cluster.rehearse() as rehearsal:
        cluster.px(
            "import torch, torch.distributed as dist\nparts = [torch.empty(2)] * "
            "4\ndist.all_gather(parts, torch.ones(2))\ndist.barrier()"
        )
    printed = capsys.readouterr().out
    assert (
        "OVERWRITTEN: all_gather at line 3 of this cell, ranks 0-3: dist.all_gather(parts, "
        "torch.ones(2))\n" in printed
    )
    assert [(finding.line, finding.ranks) for finding in rehearsal.findings] == [
        (3, (0, 1, 2, 3))
    ] and "DIFFERS: line 3 of this cell" in printed


def test_what_a_call_in_a_cell_says_is_read_there(cluster):
    with cluster.rehearse() as rehearsal:
        cluster.px(
            "import torch, torch.distributed as dist\nnames, cuda = [0], "
            "torch.cuda.is_available()\ndist.broadcast_object_list(names, src=0, "
            "device=torch.device('cuda' if cuda else 'cpu'))\ndist.broadcast_object_list(\n   "
            " names, src=0,\n    device=torch.device('cpu'))"
        )
    assert [(finding.severity, finding.line) for finding in rehearsal.findings] == [("fails", 4)]


def test_a_group_for_the_cpu_is_known_though_it_was_made_before(cluster):
    cluster.px(
        "import torch, torch.distributed as dist\nwires, backend = dist.new_group(backend='gloo'), "
        "'gloo'\nown = dist.new_group(backend=backend)"
    )
    with cluster.rehearse() as rehearsal:
        cluster.px("for group in (wires, own):\n    dist.monitored_barrier(group)")
    assert {
        event.backend
        for event in rehearsal.traces[0]
        if event.group == rehearsal.traces[0][0].group
    } == {"gloo"}
    (finding,) = rehearsal.findings
    assert (finding.severity, finding.ranks) == (
        "fails",
        (0, 1, 2, 3),
    ), "only the group whose backend a variable names is NCCL's on GPUs"
