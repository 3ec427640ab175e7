"""The size of an entry, which counts for the prize of the simplest."""

import base64
import zlib

import pytest

from manyhands.hackathon.challenges.challenge import SLOW_LINKS
from manyhands.hackathon.entry import entry_size

PLAIN = (
    "import torch\n\ndef train(model, batches, comm):\n    for batch in batches:\n       "
    " model(batch).backward()\n"
)
DILOCO = (SLOW_LINKS.folder / "ladder" / "diloco.py").read_text()
PACKED = zlib.compress(DILOCO.encode(), 9)


@pytest.mark.parametrize(
    "source",
    [
        PLAIN,
        '"""What it does."""\n# why\n' + PLAIN,
        (
            "import torch\ndef train(\n    model,\n    batches,\n    comm\n):\n    '''Trains.'''\n "
            "   for batch in batches: model(batch).backward()\n"
        ),
    ],
    ids=["plain", "comments", "broken and joined"],
)
def test_the_same_program_has_the_same_size(source):
    assert entry_size.count(source) == 16


def test_a_program_in_one_line_has_the_size_of_its_parts():
    assert entry_size.count("a = 1; b = 2; c = 3\n") == 9 and entry_size.count(
        "def f():\n    'only this'\n"
    ) == entry_size.count("def f():\n    pass\n")


@pytest.mark.parametrize(
    "source, size",
    [
        ("'" + "x" * 40 + "'", 40),
        (f"b'{'x' * 40}'", 40),
        ("9" * 40, 40),
        ("0x" + "f" * 40, 49),
        ("0x" + "f" * 9000, 10837),
        ("x" * 40, 5),
        ("f(" + "x" * 40 + "=0)", 44),
        ("'\U0001f600'", 4),
        ("True", 1),
        ("0.001", 5),
        ("f'{x}" + "y" * 40 + "'", 43),
    ],
)
def test_constants_count_by_their_length_and_so_do_names_that_can_be_data(source, size):
    assert entry_size.count(f"x = {source}") == 2 + size


def test_what_cannot_be_read_has_none():
    assert (
        entry_size.count("def")
        is entry_size.count("\0")
        is entry_size.count("-" * 20_000 + "1")
        is None
    )


HIDDEN = {
    "exec": f"exec({DILOCO!r})",
    "another name": f"run = exec\nrun({DILOCO!r})",
    "imported": "from builtins import exec as run\n",
    "module": "import builtins as b\n",
    "builtins": f"globals()['__builtins__']['exec']({DILOCO!r})",
    "torch's": f"import torch\ntorch.__builtins__['exec']({DILOCO!r})",
    "an attribute": f"print.__self__.exec({DILOCO!r})",
    "the interpreter": (
        f"import code\ncode.InteractiveInterpreter().runsource({DILOCO!r}, '', 'exec')"
    ),
    "a profile": f"import cProfile\ncProfile.runctx({DILOCO!r}, d, d)",
    "a loader": (
        "import importlib.machinery as m\nm.SourceFileLoader('', "
        f"'').source_to_code({DILOCO!r}, '')"
    ),
    "a pickle": f"import pickle\npickle.loads({b'cbuiltins' + b'exec' + DILOCO.encode()!r})",
    "packed": (
        "import code, "
        f"zlib\ncode.InteractiveInterpreter().runsource(zlib.decompress({PACKED!r}).decode(), '', "
        "'exec')"
    ),
    "packed as text": (
        "import code, zlib, "
        f"base64\ncode.InteractiveInterpreter().runsource(zlib.decompress(base64.b85decode({base64.b85encode(PACKED)!r})).decode(),"
        " '', 'exec')"
    ),
    "a number": (
        "import code, "
        f"zlib\ncode.InteractiveInterpreter().runsource(zlib.decompress({int.from_bytes(PACKED):#x}.to_bytes({len(PACKED)})).decode(),"
        " '', 'exec')"
    ),
    "a name": (
        f"import code\nlambda: n{DILOCO.encode().hex()}\ncode.InteractiveInterpreter().runsource(x,"
        " '', 'exec')"
    ),
    "names of arguments": (
        "import "
        f"code\ncode.InteractiveInterpreter().runsource(str(dict(n{DILOCO.encode().hex()}=0)), '', "
        "'exec')"
    ),
    "the docstring": (
        f"import code\ndef train(*a):\n    {DILOCO!r}\n   "
        " code.InteractiveInterpreter().runsource(train.__doc__, '', 'exec')"
    ),
    "its own text": (
        "import code, sys\n# "
        f"{DILOCO!r}\ncode.InteractiveInterpreter().runsource(sys._getframe(1).f_locals['source'], "
        "'', 'exec')"
    ),
    "one expression": "train = lambda m, b, c: ["
    + ", ".join(f"m(next(b)).backward({number})" for number in range(60))
    + "]",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_program_that_is_hidden_is_not_smaller_than_in_the_open(name):
    size = entry_size.count(HIDDEN[name])
    assert size is None or size >= entry_size.count(DILOCO)


def test_an_entry_as_people_write_it_has_a_size():
    for path in SLOW_LINKS.folder.parent.glob("*/ladder/*.py"):
        assert 80 < entry_size.count(path.read_text()) < 400
    assert entry_size.count("import torch\ntrain = torch.compile(print)\n") == 8
