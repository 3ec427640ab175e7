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
