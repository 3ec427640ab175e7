"""The rows of a report.

Ranks that do the same share one, and a place is shown where it is first.
"""

import pytest

from manyhands.cluster.faults import explain
from manyhands.cluster.faults.kinds import Outcome, Where

SUM = {"place": "line 3 of this cell", "source": "dist.all_reduce(x)"}
STEP = ("line 9 of this cell", "step()")


def waits(shape, call="all_reduce", **more):
    return {"state": "waits", "call": call, "shape": shape, "dtype": "float32", **SUM, **more}


ENDED = {"state": "finished"}
RAISED = {"state": "raised", "detail": "ValueError: no", **SUM}


@pytest.mark.parametrize(
    "ranks, rows",
    [
        (
            [waits([4]), waits([4]), ENDED, waits([4])],
            [
                (
                    "ranks 0, 1, 3  wait in all_reduce(float32 [4]) at line 3 of this cell: "
                    "dist.all_reduce(x)"
                ),
                "rank 2         has finished the cell",
            ],
        ),
        (
            [waits([4]), waits([4]), waits([5]), ENDED, ENDED],
            [
                (
                    "ranks 0, 1  wait in all_reduce(float32 [4]) at line 3 of this cell: "
                    "dist.all_reduce(x)"
                ),
                "rank 2      waits in all_reduce(float32 [5]) at the same line as ranks 0, 1",
                "ranks 3, 4  have finished the cell",
            ],
        ),
        (
            [waits([], call="recv", peer=1), waits([], call="recv", peer=0, source="another line")],
            [
                (
                    "rank 0  waits in recv(float32 [], from rank 1) at line 3 of this cell: "
                    "dist.all_reduce(x)"
                ),
                (
                    "rank 1  waits in recv(float32 [], from rank 0) at line 3 of this cell: another"
                    " line"
                ),
            ],
        ),
        (
            [waits([4], place=""), waits([5], place="")],
            [
                "rank 0  waits in all_reduce(float32 [4]), at an unknown line",
                "rank 1  waits in all_reduce(float32 [5]), at an unknown line",
            ],
        ),
        (
            [{"state": "unknown"}, {"state": "unknown"}, {"state": "computes", **SUM}],
            [
                "ranks 0, 1  do not answer",
                "rank 2      computes at line 3 of this cell: dist.all_reduce(x)",
            ],
        ),
        (
            [
                RAISED | {"callers": [STEP]},
                RAISED | {"callers": [STEP]},
                RAISED | {"detail": "KeyError", "callers": [STEP]},
                RAISED | {"callers": [("line 8", "other()")]},
            ],
            [
                "ranks 0, 1  raised ValueError: no at line 3 of this cell: dist.all_reduce(x)",
                "            called from line 9 of this cell: step()",
                "rank 2      raised KeyError at the same line as ranks 0, 1",
                "rank 3      raised ValueError: no at the same line as ranks 0, 1",
                "            called from line 8: other()",
            ],
        ),
        (
            [
                {"state": "died", "detail": "killed", **SUM, "source": ""},
                {"state": "died", "detail": "ended", **SUM, "source": ""},
            ],
            [
                "rank 0  died at line 3 of this cell (killed)",
                "rank 1  died at the same line as rank 0 (ended)",
            ],
        ),
        (
            [waits([4]) if rank % 2 else ENDED for rank in range(40)],
            [
                (
                    "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, "
                    "38  have finished the cell"
                ),
                (
                    "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, "
                    "39  wait in all_reduce(float32 [4]) at line 3 of this cell: "
                    "dist.all_reduce(x)"
                ),
            ],
        ),
    ],
    ids=[
        "one place",
        "shapes differ",
        "another line of the same number",
        "no place",
        "no answer",
        "callers",
        "no source",
        "many ranks",
    ],
)
def test_each_thing_is_said_once(ranks, rows):
    where = {rank: Where(rank, **here) for rank, here in enumerate(ranks)}
    assert explain._rows(where, sorted(where)) == [f"  {row}" for row in rows]


def noted(call, shape, **more):
    return [
        {
            "call": call,
            "shape": shape,
            "dtype": "float32",
            "group": "",
            "sequence": 0,
            "file": "",
            "line": 1,
            **more,
        }
    ]


def made(where, notes, reason="hang", **outcome):
    outcome = Outcome(
        reason=reason, notes=dict(enumerate(notes)), asked=list(range(len(notes))), **outcome
    )
    return explain.make_fault(
        outcome, {rank: Where(rank, **here) for rank, here in enumerate(where)}, len(where), 120
    )


def test_a_difference_of_shapes_is_the_cause_of_what_a_library_raises():
    """gloo's all_gather raises on the rank whose list does not fit.

    It says nothing of the other ranks.
    """
    error = {
        "ename": "RuntimeError",
        "evalue": "invalid tensor size",
        "lines": [],
        "traceback": "",
        "memory": False,
    }
    fault = made(
        [RAISED, waits([3], "all_gather"), waits([3], "all_gather")],
        [noted("all_gather", [5]), noted("all_gather", [3]), noted("all_gather", [3])],
        errors={0: error},
    )
    assert (
        "Likely cause: in call 1 of the cell all_gather(float32 [5]) on rank 0, all_gather(float32 "
        "[3]) on ranks 1, 2. Shape and dtype must be" in fault.text
    )
    assert fault.kind == "exception" and fault.differs == "tensors"


def test_what_gloo_says_of_sizes_when_it_aborts_is_the_cause_where_no_call_was_recorded():
    died = {
        "state": "died",
        "detail": (
            f"killed by signal 6 (SIGABRT), aborted by a library: 20 vs 8. {explain.TOO_LONG}."
        ),
    }
    fault = made([waits(None, "wait_tensor"), died], [[], []], exits={1: {"status": 6}})
    assert (
        "Likely cause: rank 1 received more bytes than the call expects, so the ranks' calls or "
        "their tensors differ." in fault.text
    )
    fault = made(
        [waits(None, "wait_tensor"), {**died, "detail": "killed"}],
        [[], []],
        exits={1: {"status": 6}},
    )
    assert "Likely cause: rank 0 waited for rank 1, which had died." in fault.text
