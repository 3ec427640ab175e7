"""Who waits for whom is told as it was when the ranks were stopped."""

import os
import time
from types import SimpleNamespace

from manyhands.clinic.hangs import HangWatcher, make_fault
from manyhands.clinic.reporter import write_json

CALL = {
    "call": "all_reduce",
    "tensor": "float32 [32, 20]",
    "group": [0, 1],
    "file": "train.py",
    "line": 7,
}


def stands(notes, rank, state="runs", **where):
    report_of_rank = {
        "rank": rank,
        "cell": 0,
        "state": state,
        "time": time.monotonic(),
        "blocked": False,
        "key": "",
        "call": None,
        "lines": [],
    }
    write_json(os.path.join(notes, f"where-{rank}.json"), {**report_of_rank, **where})


def test_a_rank_that_is_stopped_last_has_left_its_call_by_then(tmp_path):
    """On a busy machine the first rank that is stopped ends some time before the second.

    Then the second one's call raises.
    """
    notes = str(tmp_path)
    with HangWatcher(notes, 2, patience_s=0.5) as watcher:
        until = time.monotonic() + 60
        while watcher.hang is None and time.monotonic() < until:
            stands(notes, 0, blocked=True, key="call 3", call=CALL)
            stands(notes, 1, state="finished")
            time.sleep(0.05)
    assert watcher.hang == "hang"
    stands(notes, 0)
    fault = make_fault(
        notes,
        2,
        SimpleNamespace(returncodes={0: 70, 1: 70}, output={}),
        watcher.hang,
        300,
        watcher.reports,
    )
    assert "rank 0  waits in all_reduce" in fault.text and "line 7 of train.py" in fault.text
    assert list(fault.edges) == [(0, 1)]
