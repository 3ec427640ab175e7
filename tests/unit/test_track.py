"""The task of units 01 to 10: its two references agree, and its table says what was measured."""

import subprocess
import sys

import numpy as np
import pytest

from manyhands import track


def test_pytorch_ends_with_the_weights_of_no_framework():
    import torch
    from torch.nn.functional import cross_entropy

    weights, objectives = track.one_process()
    x, y = (torch.from_numpy(array) for array in track.data())
    model, seen = track.network(), []
    optimiser = torch.optim.SGD(model.parameters(), lr=track.RATE, weight_decay=track.DECAY)
    for step in range(track.STEPS):
        loss = cross_entropy(model(x[track.rows(step)]), y[track.rows(step)])
        seen.append(
            loss.item() + track.DECAY / 2 * sum(p.square().sum().item() for p in model.parameters())
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert track.distance(model.parameters(), weights) < track.TOLERANCE["float64"]
    assert np.allclose(seen, objectives, rtol=0, atol=1e-12) and objectives[-1] < objectives[0] / 3


def test_every_batch_has_its_rows_and_all_data_is_seen():
    batches = [range(1500)[track.rows(step)] for step in range(track.STEPS)]
    assert {len(batch) for batch in batches} == {track.ROWS} and set().union(*batches) == set(
        range(track.DIGITS)
    )
    assert len(track.data()[0]) == track.DIGITS


def test_the_tolerances_are_what_their_comment_says():
    for dtype, tolerance in track.TOLERANCE.items():
        estimate = track.STEPS * track.ROWS**0.5 * np.finfo(dtype).eps
        assert estimate < tolerance < 10 * estimate


def test_weights_that_are_not_the_same_list_are_refused():
    with pytest.raises(ValueError):
        track.distance(track.start()[:3], track.start())


def test_the_table_shows_what_was_measured_and_refuses_what_it_does_not_know():
    text = track.table("01", {"one process": 1e-15, "by hand: mean of means, uneven shards": 0.25})
    assert [line.split("  ")[-1].strip() for line in text.splitlines()[1:]] == [
        "yes",
        "no: 0.250 apart",
    ]
    with pytest.raises(ValueError, match="track.SYSTEMS"):
        track.table("01", {"by magic": 0.0})


def test_a_later_unit_has_the_lines_of_earlier_ones_above_its_own(monkeypatch):
    monkeypatch.setattr(
        track,
        "SYSTEMS",
        (
            *(line for line in track.SYSTEMS if line[0] == "01"),
            ("06", "DDP", True),
            ("07", "later", True),
        ),
    )
    lines = track.table("06", {"DDP": 0.0}).splitlines()[1:]
    assert [line[:2] for line in lines] == ["01"] * 4 + ["06"]
    assert [line.split()[-1] for line in lines] == ["yes", "yes", "yes", "no", "yes"]


def test_no_framework_is_imported():
    code = (
        "import sys; from manyhands import track; track.one_process(); print('torch' in "
        "sys.modules, 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["False", "False"], done.stderr
