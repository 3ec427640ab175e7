"""The clinic on scripts that run, with two ranks.

All patterns with all mistakes: `python -m benchmarks clinic`.
"""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time

import psutil
import pytest
from planted import PATTERNS, look

from manyhands.cli import main
from manyhands.clinic.conclude import conclude
from manyhands.clinic.page import as_html
from manyhands.clinic.plain_page import as_text
from manyhands.clinic.visit import rehearsed, visit

BY_NAME = {pattern.name: pattern for pattern in PATTERNS}
HAND, RESNET = BY_NAME["by_hand"], BY_NAME["ddp_resnet"]


def keys(done):
    return [finding.key for finding in done.mistakes]


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script into a folder of its own, and goes there."""
    folder = tmp_path / "team"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(text):
        path = folder / "train.py"
        path.write_text(textwrap.dedent(text))
        return path

    return write


def test_what_stands_behind_the_dashes_is_the_scripts_and_no_file_is_written_over(
    script, capsys, monkeypatch
):
    import manyhands.clinic.clinic_command as command

    path, asked = script("print(1)"), []
    monkeypatch.setattr(command, "_look", lambda arguments: asked.append(arguments) or 0)
    assert main(["clinic", "train.py", "--ranks", "2", "--", "--epochs", "1"]) == 0
    assert asked[0].arguments == ["--epochs", "1"] and asked[0].ranks == 2
    assert (
        main(["clinic", "train.py", "--output", "train.py"]) == 2 and path.read_text() == "print(1)"
    )
    assert (
        "train.py exists and was not written by this command" in capsys.readouterr().err
        and len(asked) == 1
    )
    path.with_name("clinic.html").write_text(f"<html>{command.MADE_BY}")
    assert main(["clinic", "train.py"]) == 0


def test_nothing_is_found_in_a_right_script():
    done = look(HAND)
    assert (keys(done), done.code, done.traceback) == ([], 0, "")
    assert done.right.startswith("Yes. In each of 4 steps all ranks had the same weights")
    assert done.hangs == "No. Every rank completed 9 steps."
    tried = dict(done.measured)[
        "first gradient, compared with a copy of the model that got the rows of all ranks at once"
    ]
    assert float(tried.split()[0]) < 1e-5
    assert (
        done.costs.steps == 4
        and done.costs.calls == 4
        and all(sent > 0 for sent in done.costs.sent_bytes)
    )


def test_a_mistake_is_named():
    done = look(HAND, "uneven")
    assert (keys(done), done.code) == (["mean of means"], 1)
    assert "0.625, 0.375" in done.mistakes[0].text


def test_batch_norm_is_a_remark_and_the_next_epoch_is_reached():
    done = look(RESNET, "no set_epoch")
    assert (keys(done), done.code) == (["set_epoch"], 1)
    assert "batch norm" in [finding.key for finding in done.remarks]


def test_a_hang_comes_with_who_waits_for_whom():
    done = look(HAND, "early")
    assert keys(done) == ["hang"] and done.code == 1
    assert (
        "waits in all_reduce(float32 [32, 20]) at line " in done.hangs
        and "of by_hand.py" in done.hangs
    )
    assert "0 -> 1" in done.hangs and done.visit.fault.svg.startswith("<svg")


FAILS = """
    import json
    import torch
    import torch.distributed as dist

    def deep(row):
        raise RuntimeError("no such column")

    dist.init_process_group("gloo")
    open("here.txt", "w").write("written beside the script")
    json.loads("{}", object_hook=deep)
"""


def test_a_script_that_fails_and_nothing_in_its_folder_is_changed(script, capsys, tmp_path):
    path, page = script(FAILS), tmp_path / "page.html"
    assert main(["clinic", str(path), "--ranks", "2", "--output", str(page)]) == 2
    text = capsys.readouterr().out
    assert (
        "RuntimeError: no such column" in text and "line 7, in deep" in text and "runpy" not in text
    )
    assert (
        "line 11, in <module>" in text
        and "calls of libraries left out" in text
        and "decoder.py" not in text
    )
    assert "rank_program" not in text and str(tmp_path) not in page.read_text()
    assert os.listdir(path.parent) == ["train.py"]


CROSSED = """
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    for step in range(4):
        dist.all_reduce(torch.ones(1000))
        if step == 2 and dist.get_rank() == 0:
            dist.all_reduce(torch.ones(4))
"""
ENDED_SILENTLY = """
    import time
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    try:
        for step in range(4):
            dist.all_reduce(torch.ones(1000))
            if step == 2 and dist.get_rank() == 0:
                dist.all_reduce(torch.ones(4))
    except RuntimeError:
        time.sleep(60)  # the launcher ends this rank before it has said anything
"""


@pytest.mark.parametrize(
    "code, line", [(CROSSED, 9), (ENDED_SILENTLY, 11)], ids=["raised", "silent"]
)
def test_a_rank_that_gloo_has_ended_is_told_with_the_calls_that_do_not_fit(script, code, line):
    """Its process is aborted by the library.

    The other rank's exception is only that the connection is lost, and the launcher may end that
    rank before it has written the exception down.
    """
    done = conclude(visit(script(code), ranks=2))
    assert (keys(done), done.code) == (["crossed"], 2)
    assert (
        "all_reduce(float32 [4]) on rank 0" in done.mistakes[0].text
        and "float32 [1000]) on rank 1" in done.mistakes[0].text
    )
    assert (
        f"line {line} of train.py" in done.traceback
        and "doesn't match expected size" in done.traceback
    )
    assert "killed by signal 6 (SIGABRT)" in done.traceback


KILLED = """
    import os, signal
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(4))
"""


def test_a_rank_that_the_system_has_killed_is_told_before_those_that_lost_it(script):
    done = conclude(visit(script(KILLED), ranks=2))
    assert (keys(done), done.code) == ([], 2)
    assert (
        done.traceback.startswith("Rank 1 died.")
        and "killed by signal 9 (SIGKILL)" in done.traceback
    )


LAST_LAYER = """
    import sys
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    body, head = nn.Linear(4, 8), nn.Linear(8, 2)
    ddp = DistributedDataParallel(body)
    optimizer = torch.optim.SGD([*ddp.parameters(), *head.parameters()], lr=0.1)
    draw = torch.Generator().manual_seed(dist.get_rank())
    for step in range(int(sys.argv[1])):
        loss = head(torch.relu(ddp(torch.randn(6, 4, generator=draw)))).square().mean()
        if step == 3 and dist.get_rank() == 1:
            loss = loss * (loss - 9).sqrt()  # NaN
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_script_that_ends_early_and_calls_two_models_whose_numbers_become_nan(
    script, monkeypatch
):
    outcome = visit(script(LAST_LAYER), ["4"], ranks=2)
    done = conclude(outcome)
    assert keys(done) == ["nan", "part own"] and "1:weight, 1:bias" in done.mistakes[1].text
    assert (
        "In step 4 the gradient that backward computed on rank 1 holds NaN" in done.mistakes[0].text
    )
    assert ("steps compared", "3") in done.measured and "nan apart" not in as_text(done)
    assert done.mistakes[1].remedy.startswith(
        "These parameters are not in the module that DistributedDataParallel wraps"
    )
    assert "not tried: several models" in [finding.key for finding in done.remarks]
    assert done.hangs == "No. Every rank completed 4 steps."
    for name, code in (
        ("remark_rules.remarks", 1),
        ("judge.fit", 1),
        ("judge.find_mistakes", 3),
        ("layouts.Evidence", 3),
        ("costs.add_up", 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"manyhands.clinic.{name}", lambda *_: {}["unforeseen"])
            done = conclude(outcome)
        assert (
            "unforeseen" in as_text(done) and "unforeseen" in as_html(done) and done.code == code
        ), name


UNEVEN = """
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.utils.data import DataLoader, IterableDataset

    class Stream(IterableDataset):
        def __iter__(self):  # the same rows on each rank, and a row of the rank's
            for number in range(12 if dist.get_rank() else 14):
                yield torch.tensor([number * 0.1, number % 3 or dist.get_rank()])

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    ddp = nn.parallel.DistributedDataParallel(model)
    model[0].requires_grad_(True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(Stream(), batch_size=2):
        optimizer.zero_grad()
        nn.functional.mse_loss(ddp(x), x[:, 1:]).backward()
        optimizer.step()
"""


def test_uneven_batches_and_remedies_that_fit(script, capsys, tmp_path):
    assert (
        main(
            [
                "clinic",
                str(script(UNEVEN)),
                "--ranks",
                "2",
                "--patience",
                "3",
                "--output",
                str(tmp_path / "page.html"),
            ]
        )
        == 1
    )
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "rank 1 called backward less often than the ranks that wait. The number of calls is 6 "
        "instead of 7." in text
    )
    assert (
        "What to do: Give all ranks the same number of batches" in text
        and "not averaged, The script hangs 14 Pipeline" in text
    )
    assert (
        "-> An IterableDataset does not accept a DistributedSampler, so shard by rank and by worker"
        in text
    )
    assert (
        "own: 0.weight, 0.bias. -> DistributedDataParallel notes in its constructor" in text
        and "Wrap the model again" in text
    )


def test_one_rank_that_hangs_is_ended_by_ctrl_c(script):
    path = script("import time, torch\nprint('here', flush=True)\ntime.sleep(600)\n")
    env = {**os.environ, "CLINIC_MARK": str(path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "manyhands", "clinic", str(path), "--ranks", "2"],
        env=env,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    def living():
        processes = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(
                    "CLINIC_MARK"
                ) == str(path):
                    processes.append(process)
            except psutil.Error:
                pass
        return processes

    deadline = time.monotonic() + 60
    while (
        len([process for process in living() if "rank_program.py" in " ".join(process.cmdline())])
        < 2
        and time.monotonic() < deadline
    ):
        time.sleep(0.2)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130 and "Stopped" in process.stderr.read()
    assert living() == []


def test_what_cannot_be_started(capsys):
    assert main(["clinic", "nowhere.py"]) == 2
    assert "there is no file nowhere.py" in capsys.readouterr().err


FAILS_ON_GPUS = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model, rows = torch.nn.Linear(4, 2), torch.Generator().manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    open("checkpoint", "a").write("x")
    for step in range(10**9):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=rows)).square().mean().backward()
        works = [dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, async_op=True) for p in model.parameters()]
        [work.wait() for work in works]
        optimizer.step()
        if step == 5:
            dist.all_reduce(torch.zeros(2, 4).t())
"""


def test_the_clinic_says_what_would_fail_on_gpus(script):
    path = script(FAILS_ON_GPUS)
    outcome = visit(path, ranks=2)
    rehearsed(outcome, path)
    done = conclude(outcome)
    assert done.right.startswith(("Yes.", "Yes, as far as")) and done.code == 1
    assert [finding.title for finding in done.gpu_findings] == ["Fails: train.py:16, ranks 0, 1"]
    assert outcome.rehearsal.whole == {0: 33, 1: 33} and "for 9 steps" in done.gpu_note
    assert [path_there.name for path_there in path.parent.iterdir()] == ["train.py"]


def test_pipes_and_sockets_beside_a_script_are_left_out_and_named(script, capsys):
    """Editors, ssh and tmux leave such; a copy of the folder cannot hold them."""
    path = script("""
        import os
        import time
        import torch
        from torch.nn.parallel import DistributedDataParallel

        torch.distributed.init_process_group("gloo")
        assert not os.path.lexists("pipe")
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            start = time.time()
            optimizer.zero_grad()
            for part in range(2):
                torch.nn.functional.mse_loss(model(torch.ones(4, 2)), torch.ones(4, 1)).backward()
            optimizer.step()
            print(time.time() - start, "s")
        torch.distributed.destroy_process_group()
    """)
    os.mkfifo(path.with_name("pipe"))
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("a socket")
    code, printed = main(["clinic", "train.py", "--ranks", "2"]), capsys.readouterr()
    text = " ".join(printed.out.split())
    assert code == 0 and "Traceback" not in printed.err  # what is worth a remark gives no 1
    assert "a socket, pipe." in text
    assert "no loss is divided by 2, which acts like a learning rate 2 times as high." in text
    assert (
        "gradient was 2 times the mean over all 16 rows" in text
        and "a single process computes" not in text
    )
    assert "Remark: train.py:17, ranks 0, 1: time reads a clock" in text
