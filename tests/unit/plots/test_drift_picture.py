"""Unit 10's pictures: the plane in which ranks drift apart, and the bars of Horovod's timeline."""

import json

import numpy as np

from manyhands.plots import drift
from manyhands.plots import horovod_timeline as trace


def paths():
    """Three ranks, two steps of (1, 0, 0).

    Ranks 1 and 2 start apart in the second and third direction.
    """
    starts = np.array([[0, 0, 0], [0, 3.0, 0], [0, 0, 1.0]])
    return starts[:, None] + np.arange(3)[:, None] * np.array([1.0, 0, 0])


def test_parallel_ways_stay_parallel_and_are_never_longer_than_they_are():
    seen = drift.plane(paths(), [0, 0, 0], [2, 0, 0])
    assert np.allclose(seen[..., 0], [[0, 1, 2]] * 3)
    assert np.allclose(seen[:, 0, 1], seen[:, 2, 1])
    assert 3 < np.ptp(seen[:, 0, 1]) <= 10**0.5  # of ranks 1 and 2


def test_the_plane_shows_one_way_if_there_is_only_one():
    bent = np.array([[[0, 0, 0], [1, 1.0, 0], [2, 0, 0]]] * 4)
    seen = drift.plane(bent, [0, 0, 0], [2, 0, 0])
    assert np.allclose(seen, seen[0]) and np.allclose(np.abs(seen[0, :, 1]), [0, 1, 0])


def test_distances_are_those_from_rank_0():
    assert drift.apart(paths()).tolist() == [3, 3, 3]
    svg = drift.drift({"apart": paths(), "same": paths()[:1]}, ([0, 0, 0], [2, 0, 0]))
    assert (
        svg.text.count(">rank ") == 1
        and "apart" in svg.text
        and svg.text
        == drift.drift({"apart": paths(), "same": paths()[:1]}, ([0, 0, 0], [2, 0, 0])).text
    )


def events():
    rows = [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": f"allreduce.joint {pid}"}}
        for pid in (1, 2)
    ]
    for first in (0, 10_000):
        for pid in (1, 2):
            rows += [
                {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": first, "pid": pid},
                {"ph": "X", "name": "0", "ts": first, "pid": pid, "dur": 0},
                {"ph": "E", "ts": first + 2000, "pid": pid},
                {"ph": "B", "name": "ALLREDUCE", "ts": first + 2000, "pid": pid},
                {"ph": "B", "name": "GLOO_ALLREDUCE", "ts": first + 3000, "pid": pid},
                {"ph": "E", "ts": first + 4000, "pid": pid},
                {"ph": "E", "ts": first + 4500, "pid": pid},
            ]
    return [{"ph": "i", "name": "CYCLE_START", "ts": 1, "s": "g"}, *rows]


def test_a_timeline_is_read_and_drawn(tmp_path):
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps(events()))
    phases = trace.read(path)
    assert len(phases) == 12 and phases[0] == trace.Phase(
        "allreduce.joint 1", "NEGOTIATE_ALLREDUCE", 0.0, 2.0
    )
    assert trace.messages(phases) == 2  # two tensors that begin together are one message
    last = trace.pick(phases, "allreduce.", last=1)
    assert (
        len(last) == 6
        and last[0] == trace.Phase("joint 1", "NEGOTIATE_ALLREDUCE", 0.0, 2.0)
        and trace.messages(last) == 1
    )
    assert trace.pick(phases, "broadcast.") == []
    text = trace.timeline({"together": last}).text
    assert (
        "joint 2" in text
        and "all-reduce" in text
        and "negotiation" in text
        and "fusion" not in text
    )
