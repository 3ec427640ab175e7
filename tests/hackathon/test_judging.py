"""The command, the record, and a judge that is killed."""

import hashlib
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import psutil
import pytest

from conftest import QUICK
from manyhands.hackathon import hack_command
from manyhands.hackathon.challenges import tasks
from manyhands.hackathon.challenges.challenge import BIG_BATCH, SLOW_LINKS
from manyhands.hackathon.judge import judging, judging_record
from manyhands.hackathon.judge import sandboxes as closed
from manyhands.shared import signing

QUIT = (
    "def train(model, batches, comm):\n    print('here', comm.rank())\n    comm.barrier().wait()\n "
    "   return 1\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch, sandboxes):
    """A folder with a key, in which commands run, all in the same sandboxes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(closed, "Sandboxes", lambda ranks: nullcontext(sandboxes))
    signing.new_key("judge.key")
    return tmp_path


@pytest.fixture
def entry(folder, capsys):
    assert hack_command.main(["init", "big_batch", "ours"]) == 0
    assert "manyhands hack try ours" in capsys.readouterr().out
    assert sorted(path.name for path in (folder / "ours").iterdir()) == [
        "README.md",
        "challenge.txt",
        "entry.py",
    ]
    return folder / "ours" / "entry.py"


def test_an_entry_from_its_beginning_to_its_record(entry, capsys, monkeypatch):
    assert len(judging.hidden_seeds()) == 5
    # of hidden ones, one in some hundred is bad luck for this entry: 0.87 of 0.88
    seeds = judging.public_seeds(2)
    monkeypatch.setattr(judging, "hidden_seeds", lambda: seeds)
    entry.write_text((BIG_BATCH.folder / "ladder" / "momentum.py").read_text())
    assert hack_command.main(["judge", "ours", "--key", "judge.key"]) == 0
    printed = capsys.readouterr().out
    assert (
        "run 2 of 2: 32 updates, accuracy 0." in printed
        and "ours, big_batch: 32 updates" in printed
    )
    assert hack_command.main(["verify", "ours.record", "--public", "judge.key.pub"]) == 0
    assert "signed, and unchanged since.\nours, big_batch: 32 updates" in capsys.readouterr().out
    record, _ = judging_record.verified(Path("ours.record").read_bytes())
    assert len(set(record["seeds"])) == len(record["runs"]) == 2 and record["score"] == 32

    assert hack_command.main(["judge", "ours", "--key", "judge.key"]) == 2  # never over a record
    assert "ours.record already exists" in capsys.readouterr().err
    assert (
        hack_command.main(
            ["judge", "ours", "--key", "judge.key", "--seeds-of", "ours.record", "-o", "again"]
        )
        == 0
    )
    again, _ = judging_record.verified(Path("again").read_bytes())
    assert (
        record["seeds_of"] is None
        and again["seeds_of"] == hashlib.sha256(Path("ours.record").read_bytes()).hexdigest()
    )
    assert (
        hack_command.main(["verify", "again"]) == 0
        and "The seeds were taken from an earlier record" in capsys.readouterr().out
    )
    assert [{**run, "processor_s": 0} for run in again["runs"]] == [
        {**run, "processor_s": 0} for run in record["runs"]
    ]


def test_an_entry_without_a_score_is_recorded_too_and_shown_only_on_public_seeds(entry, capsys):
    entry.write_text(QUIT)
    assert hack_command.main(["judge", "ours", "--key", "judge.key"]) == 1
    assert "here" not in capsys.readouterr().out
    assert hack_command.main(["try", "ours", "--runs", "1"]) == 1
    printed = capsys.readouterr().out
    assert (
        "[rank 2] here 2" in printed
        and "no score: Rank" in printed
        and "train returned a int" in printed
    )
    record, _ = judging_record.verified(Path("ours.record").read_bytes())
    assert record["score"] is None and len(record["runs"]) == 1


def test_a_record_that_was_changed_or_signed_by_another_is_refused(entry, capsys):
    entry.write_text(QUIT)
    hack_command.main(["judge", "ours", "--key", "judge.key"])
    signing.new_key("other.key")
    assert hack_command.main(["verify", "ours.record", "--public", "other.key.pub"]) == 1
    data = Path("ours.record").read_bytes()
    for name, changed in (
        ("changed", data.replace(b'"score": null', b'"score": 1.0 ')),
        ("more", data + b" "),
        ("none", data.split(b"%")[0]),
        ("other", signing.signed(b"[]\n", signing.load_key("judge.key"))),
    ):
        assert changed != data
        Path(name).write_bytes(changed)
        assert hack_command.main(["verify", name]) == 1
    assert "other is signed, but is not a record of a judging" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command, said",
    [
        (
            ["init", "slow", "x"],
            (
                "there is no challenge 'slow'. There are: big_batch, does_not_fit, lame_rank, "
                "slow_links."
            ),
        ),
        (["init", "slow_links", "ours"], "ours already exists"),
        (["try", "nowhere"], "nowhere is not a folder"),
        (["judge", "ours", "--key", "nokey"], "there is no file nokey"),
        (["judge", "ours", "--key", "judge.key.pub"], "is not a private key"),
        (["verify", "nothing"], "there is no file nothing"),
    ],
)
def test_what_cannot_be_done_is_told(entry, command, said, capsys):
    assert hack_command.main(command) == 2
    assert said in capsys.readouterr().err


def test_where_no_rooms_can_be_it_is_told(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        closed.bubblewrap, "namespaces", lambda: "bubblewrap is missing: apt-get install bubblewrap"
    )
    hack_command.main(["init", "slow_links", "ours"])
    signing.new_key("judge.key")
    assert hack_command.main(["judge", "ours", "--key", "judge.key"]) == 2
    assert not (tmp_path / "ours.record").exists()
    assert (
        "The judge runs entries only in bubblewrap's rooms: bubblewrap is missing"
        in capsys.readouterr().err
    )


def test_seeds_are_new_each_time():
    assert len({seed for _ in range(3) for seed in judging.hidden_seeds()}) == 15
    assert not set(judging.public_seeds()) & set(judging.hidden_seeds())


def test_the_same_seed_gives_the_same_data_and_another_others():
    task, same, other = (SLOW_LINKS.task(seed) for seed in (b"1", b"1", b"2"))
    for x, y, z in (
        (task.weights, same.weights, other.weights),
        (task.test[0], same.test[0], other.test[0]),
        (task.shards[3][0], same.shards[3][0], other.shards[3][0]),
    ):
        assert x.equal(y) and not x.equal(z)


def test_streams_of_one_seed_have_nothing_in_common():
    drawn = [
        tasks.stream(b"1", what).random(1000)
        for what in ("centres", "shard 0", "shard 1", "test", "weights", "order 0")
    ]
    apart = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(apart).max() < 0.2  # 6 standard deviations


@pytest.mark.parametrize("moment", ["rooms open", "ranks run"])
def test_a_judge_that_is_killed_leaves_nothing(folder, moment):
    (folder / "ours").mkdir()
    (folder / "ours" / "challenge.txt").write_text("slow_links")
    (folder / "ours" / "entry.py").write_text(
        "import time\ndef train(model, batches, comm):\n    time.sleep(1000)\n"
    )
    judge = psutil.Popen(
        [sys.executable, "-m", "manyhands", "hack", "judge", "ours", "--key", "judge.key"],
        stdout=subprocess.DEVNULL,
    )
    wanted = 4 if moment == "rooms open" else 3 * QUICK.ranks  # bubblewrap, keeper, rank
    until = time.monotonic() + 600
    while len(below := judge.children(recursive=True)) < wanted and time.monotonic() < until:
        time.sleep(0.05)
    assert len(below) >= wanted
    judge.kill()
    judge.wait()
    _, left = psutil.wait_procs(below, timeout=20)
    assert left == []
    assert sorted(path.name for path in folder.iterdir()) == ["judge.key", "judge.key.pub", "ours"]
