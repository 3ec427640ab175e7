"""The lines that count for the prize of the simplest."""

import pytest

from manyhands.hackathon import entry_lines

PLAIN = "import torch\n\ndef train(model, batches, comm):\n    for batch in batches:\n        model(batch).backward()\n"


@pytest.mark.parametrize("source", [
    PLAIN,
    '"""What it does."""\n# why\n' + PLAIN,
    "import torch\ndef train(\n    model,\n    batches,\n    comm\n):\n    '''Trains.'''\n    for batch in batches: model(batch).backward()\n",
], ids=["plain", "comments", "broken and joined"])
def test_the_same_statements_have_the_same_lines(source):
    assert entry_lines.count(source) == 4


def test_statements_on_one_line_are_several():
    assert entry_lines.count("a = 1; b = 2; c = 3\n") == 3 and entry_lines.count("def f():\n    'only this'\n") == 2


def test_what_cannot_be_read_has_none():
    assert entry_lines.count("def") is entry_lines.count("\0") is entry_lines.count("-" * 20_000 + "1") is None


@pytest.mark.parametrize("source", [
    f"exec({PLAIN!r})\n", f"run = exec\nrun({PLAIN!r})\n", "from builtins import exec as run\n", "import builtins as b\n", "__builtins__['exec']('')\n"])
def test_who_hides_statements_in_a_text_has_no_lines(source):
    assert entry_lines.count(source) is None


def test_torch_compile_is_no_text():
    assert entry_lines.count("import torch\ntrain = torch.compile(print)\n") == 2
