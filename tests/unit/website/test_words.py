"""The glossary against the units that it names, and the cheat sheet against the libraries."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from manyhands.units import units

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs/GLOSSARY.md").read_text(encoding="utf-8")
ENTRIES = re.findall(
    r"^\* \*\*(.+?)\*\*:(.*?)(?=^\* |^## |^\[00\])", TEXT, re.MULTILINE | re.DOTALL
)
UNITS = {unit.number: unit for unit in units(ROOT)}
SHEET = (ROOT / "docs/CHEAT_SHEET.md").read_text(encoding="utf-8")
# a word of the glossary -> how its unit writes it
WRITTEN = {
    "batch norm, synchronised": "batch norm",
    "DDP": "DistributedDataParallel",
    "sampler, distributed": "DistributedSampler",
    "accumulation": "micro-batch",
    "activation checkpointing": "recomputation",
    "pseudo connect": "pseudo_connect",
    "mirrored variable": "mirrored",
    "bus bandwidth": "busbw",
    "gradient noise scale": "noise of a gradient",
    "local rank": "LOCAL_RANK",
    "resharding": "reshard",
    "torn file": "torn",
    "model parallelism": "model parallel",
    "process group": "group",
    "world size": "world_size",
}


def test_words_stand_in_the_order_of_the_alphabet_each_once_under_its_letter():
    words = [word for word, _ in ENTRIES]
    assert len(words) > 55 and len(set(words)) == len(words)
    assert words == sorted(words, key=lambda word: word.lower().replace("-", " "))
    for letter, part in re.findall(
        r"^## (\w)\n(.*?)(?=^## |^\[00\])", TEXT, re.MULTILINE | re.DOTALL
    ):
        assert {
            word[0].upper() for word in re.findall(r"^\* \*\*(.+?)\*\*", part, re.MULTILINE)
        } == {letter}


@pytest.mark.parametrize(("word", "said"), ENTRIES, ids=[word for word, _ in ENTRIES])
def test_the_unit_that_a_word_names_treats_it(word, said):
    """A unit that is there is linked and has the word; one that is not is called planned."""
    [(link, number)] = re.findall(r"\(unit (\[?)(\d\d)\]?(?:, planned)?\)\.\s*$", said)
    unit = UNITS[number]
    assert bool(link) != unit.planned and (", planned)" in said) == unit.planned
    if not unit.planned:
        texts = [ROOT / f"sources/{folder}/{unit.name}.py" for folder in ("tutorial", "labs")] + [
            ROOT / f"slides/{unit.name}.md"
        ]
        text = " ".join(
            re.sub(r"\n# ?", " ", path.read_text(encoding="utf-8")) for path in texts
        ).lower()
        asked = WRITTEN.get(word, word).lower()
        assert asked in text or asked.replace("-", "") in text or asked.replace("-", " ") in text, (
            f"{unit.name} never says {asked!r}"
        )


def test_its_links_lead_to_their_units():
    defined = dict(re.findall(r"^\[(\d\d)\]: \.\./notebooks/(\w+)\.ipynb$", TEXT, re.MULTILINE))
    assert (
        defined == {number: unit.name for number, unit in UNITS.items() if number in defined}
        and len(defined) > 10
    )


def test_the_unit_behind_a_row_of_the_cheat_sheet_uses_its_call():
    links = dict(re.findall(r"^\[(\d\d)\]: \.\./notebooks/(\w+)\.ipynb$", SHEET, re.MULTILINE))
    assert links == {number: UNITS[number].name for number in links} and set(
        re.findall(r" \[(\d\d)\]", SHEET)
    ) == set(links)
    rows = re.findall(r"^\| ([^|`]+) \[(\d\d)\] \| ([^|]+) \|", SHEET, re.MULTILINE)
    assert len(rows) == SHEET.count("\n| ") - 1  # all but the head
    for what, number, calls in rows:
        text = (ROOT / f"sources/tutorial/{links[number]}.py").read_text(encoding="utf-8")
        call = re.search(r"`(?:dist\.)?(\w+)", calls).group(1)
        assert re.search(rf"\b{call}", text), f"{what}: {links[number]} never says {call}"


def names(prefix):
    """The names behind `prefix.` in the cheat sheet's code."""
    return sorted(set(re.findall(rf"\b{prefix}\.(\w+)", " ".join(re.findall(r"`([^`]+)`", SHEET)))))


def test_every_call_of_the_cheat_sheet_exists():
    asked = {
        prefix: names(prefix) for prefix in ("dist", "comm", "hvd", "ctx", "strategy", "F", "c")
    }
    assert min(len(calls) for calls in asked.values()) >= 2
    program = """if True:
        import json, os, sys
        asked = json.loads(sys.argv[1])
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import torch.distributed as dist
        from mpi4py import MPI
        import tensorflow as tf
        from manyhands import comm, functions
        here = {"dist": [dist], "comm": [MPI.Comm, MPI.Intracomm], "ctx": [tf.distribute.ReplicaContext], "strategy": [tf.distribute.Strategy], "F": [functions],
                "c": [comm.Communicator]}
        try:
            import horovod.torch as hvd
            here["hvd"] = [hvd]
        except ImportError:
            pass  # Horovod is built, and may be missing
        told = {"c": ["mpi_comm"]}  # ChainerMN's alone
        # what these set on themselves when they are made, no class has
        told["c"] += ["rank", "size", "intra_rank"]
        print([f"{prefix}.{name}" for prefix, places in here.items() for name in asked[prefix]
               if name not in told.get(prefix, ()) and not any(hasattr(place, name) for place in places)])
        old = [name for name in asked["dist"] if getattr(getattr(dist, name), "__deprecated__", None)]
        print(old)

        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with strategy.scope():
            variable, optimizer = tf.Variable(0.0), tf.keras.optimizers.SGD(1.0)
        strategy.run(lambda: optimizer.apply_gradients([(tf.constant(1.0), variable)]))
        print(float(variable.numpy()))
    """
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"], done.stdout + done.stderr[-2000:]
    # two replicas with gradient 1 and rate 1: their gradients are summed
    assert "`apply_gradients` sums" in SHEET and done.stdout.split("\n")[2] == "-2.0", (
        done.stdout + done.stderr[-2000:]
    )


def test_a_group_of_gloo_is_lost_after_a_timeout_and_a_new_one_works(tmp_path):
    """As the cheat sheet, the glossary and unit 00 say.

    Rank 1 comes two seconds too late to the second all-reduce.
    """
    program = """if True:
        import multiprocessing, sys, time
        from datetime import timedelta
        import torch
        import torch.distributed as dist

        def tried(group):
            try:
                dist.all_reduce(x := torch.ones(1), group=group)
            except RuntimeError:
                return "raises"
            return x.item()

        def main(rank):
            dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=rank, world_size=2, timeout=timedelta(seconds=60))
            group = dist.new_group(timeout=timedelta(seconds=2))
            found = [tried(group), time.sleep(4) if rank else tried(group), tried(group), tried(dist.new_group())]
            said.put((rank, found))

        start = multiprocessing.get_context("fork")
        said = start.SimpleQueue()
        ranks = [start.Process(target=main, args=(rank,)) for rank in (0, 1)]
        for process in ranks:
            process.start()
        print(sorted([said.get(), said.get()]))
        print(dist.Backend.backend_capability["gloo"])
    """
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=100,
    )
    outcome, devices = done.stdout.splitlines()
    assert ast.literal_eval(outcome) == [
        (0, [2.0, "raises", "raises", 2.0]),
        (1, [2.0, None, "raises", 2.0]),
    ], done.stderr[-2000:]
    assert "**group is lost**" in SHEET and "cannot be used any more" in dict(ENTRIES)["gloo"]
    # what it does with tensors of a GPU: docs/GPU.md
    assert ast.literal_eval(devices) == ["cpu", "cuda"]
