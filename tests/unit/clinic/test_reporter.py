"""What a rank writes down is whole, or not there."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from manyhands.clinic.reporter import write_json, write_tensors


def test_a_rank_that_is_ended_while_it_writes_leaves_nothing_that_cannot_be_read(
    tmp_path, monkeypatch
):
    """Ranks may be ended before they have written what they saw.

    So it is on a busy machine, where ranks that hang are stopped, and ended then.
    """
    path, whole = tmp_path / "seen-0.pt", torch.save

    def ended(value, place):
        whole(value, place)
        with open(place, "r+b") as file:
            file.truncate(0)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", ended)
    with pytest.raises(KeyboardInterrupt):
        write_tensors(path, {"rank": 0})
    assert not path.exists()
    monkeypatch.setattr(torch, "save", whole)
    write_tensors(path, {"rank": 0, "start": torch.ones(3)})
    assert torch.load(path, weights_only=False)["rank"] == 0


def test_two_threads_may_write_the_same_file(tmp_path):
    """A thread reports where the script is while the script itself ends and reports that."""
    path = tmp_path / "where-0.json"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: write_json(path, {"number": number}), range(400)))
    assert 0 <= json.loads(path.read_text())["number"] < 400 and list(tmp_path.iterdir()) == [path]
