"""The glossary against the units that it names, and the cheat sheet against the libraries."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from manyhands.units import units

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs/GLOSSARY.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\* \*\*(.+?)\*\*:(.*?)(?=^\* |^## |^\[00\])", TEXT, re.MULTILINE | re.DOTALL)
UNITS = {unit.number: unit for unit in units(ROOT)}
SHEET = (ROOT / "docs/CHEAT_SHEET.md").read_text(encoding="utf-8")
# a word of the glossary -> how its unit writes it
WRITTEN = {"batch norm, synchronised": "batch norm", "DDP": "DistributedDataParallel", "sampler, distributed": "DistributedSampler",
           "accumulation": "micro-batch", "pseudo connect": "pseudo_connect", "mirrored variable": "mirrored", "bus bandwidth": "busbw", "gradient noise scale": "noise of a gradient", "local rank": "LOCAL_RANK", "resharding": "reshard", "torn file": "torn",
           "model parallelism": "model parallel", "process group": "group", "world size": "world_size"}


def test_words_stand_in_the_order_of_the_alphabet_each_once_under_its_letter():
    words = [word for word, _ in ENTRIES]
    assert len(words) > 55 and len(set(words)) == len(words)
    assert words == sorted(words, key=lambda word: word.lower().replace("-", " "))
    for letter, part in re.findall(r"^## (\w)\n(.*?)(?=^## |^\[00\])", TEXT, re.MULTILINE | re.DOTALL):
        assert {word[0].upper() for word in re.findall(r"^\* \*\*(.+?)\*\*", part, re.MULTILINE)} == {letter}


@pytest.mark.parametrize(("word", "said"), ENTRIES, ids=[word for word, _ in ENTRIES])
def test_the_unit_that_a_word_names_treats_it(word, said):
    """A unit that is there is linked and has the word; one that is not is called planned."""
    [(link, number)] = re.findall(r"Unit (\[?)(\d\d)\]?(?: \(planned\))?\.\s*$", said)
    unit = UNITS[number]
    assert bool(link) != unit.planned and ("(planned)" in said) == unit.planned
    if not unit.planned:
        texts = [ROOT / f"sources/{folder}/{unit.name}.py" for folder in ("tutorial", "labs")] + [ROOT / f"slides/{unit.name}.md"]
        text = " ".join(re.sub(r"\n# ?", " ", path.read_text(encoding="utf-8")) for path in texts).lower()
        asked = WRITTEN.get(word, word).lower()
        assert asked in text or asked.replace("-", "") in text or asked.replace("-", " ") in text, f"{unit.name} never says {asked!r}"


def test_its_links_lead_to_their_units():
    defined = dict(re.findall(r"^\[(\d\d)\]: \.\./notebooks/(\w+)\.ipynb$", TEXT, re.MULTILINE))
    assert defined == {number: unit.name for number, unit in UNITS.items() if number in defined} and len(defined) > 10


def names(prefix):
    """The names behind `prefix.` in the cheat sheet's code."""
    return sorted(set(re.findall(rf"\b{prefix}\.(\w+)", " ".join(re.findall(r"`([^`]+)`", SHEET)))))


def test_every_call_of_the_cheat_sheet_exists():
    asked = {prefix: names(prefix) for prefix in ("dist", "comm", "hvd", "ctx", "strategy", "F", "c")}
    assert min(len(found) for found in asked.values()) >= 2
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
    """
    done = subprocess.run([sys.executable, "-c", program, json.dumps(asked)], capture_output=True, text=True, timeout=300)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"], done.stdout + done.stderr[-2000:]
