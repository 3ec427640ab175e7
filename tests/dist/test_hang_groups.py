"""A report of a hang names groups, shapes and numbers of calls.

The cause follows from what differs.
"""

import pytest
from test_faults import has_line, provoke

from manyhands.cluster import Hang, Mismatch

GATHER = (
    "def gather(n, group=None):\n    size = dist.get_world_size(group)\n   "
    " dist.all_gather_single(torch.zeros(size * n), torch.ones(n), group=group)\n"
)
PAIRS = (
    GATHER + "pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]\nmine = pairs[rank // 2]\n"
)
SUMS = PAIRS + "dist.all_reduce(torch.ones(2), group=mine)\n"


@pytest.mark.parametrize(
    "code, kind, culprits, words",
    [
        (
            PAIRS
            + "gather(19 if rank < 2 else 45, mine)\ngather(19 if rank < 2 else 45, None if rank =="
            " 1 else mine)",
            Hang,
            None,
            [
                "all_gather_single(float32 [19], in the group of ranks 0, 1)",
                "different groups: a group of ranks 0, 1 on rank 0, a group of all ranks on rank 1",
                "Does every call have the argument group=group?",
            ],
        ),
        (
            PAIRS + "gather(19 if rank < 2 else 45, mine)\ngather(19 if rank < 2 else 45)",
            Mismatch,
            None,
            [
                "all_gather_single(float32 [19]) on ranks 0, 1, all_gather_single(float32 [45]) on "
                "ranks 2, 3"
            ],
        ),
        (
            PAIRS + "gather(3, mine if rank < 2 else None)",
            Hang,
            [0, 1],
            [
                "different groups: a group of ranks 0, 1 on ranks 0, 1, a group of all ranks on "
                "ranks 2, 3."
            ],
        ),
        (
            PAIRS
            + "trio = dist.new_group([0, 1, 2])\nif rank < 3:\n    for group in (mine, trio) if "
            "rank else (trio, mine):\n        gather(2, group) if group is not pairs[1] else "
            "None",
            Hang,
            None,
            [
                (
                    "different groups: a group of ranks 0-2 on ranks 0, 2, a group of ranks 0, 1 on"
                    " rank 1."
                ),
                "must use them in the same order",
            ],
        ),
        (
            (
                "trio = dist.new_group([0, 2, 3])\nb = torch.zeros(1)\nif rank != 1:\n    me = "
                "dist.get_rank(trio)\n    dist.recv(b, src=[3, 0, 2][me], group=trio)"
            ),
            Hang,
            None,
            [
                "recv(float32 [1], from rank 3, in the group of ranks 0, 2, 3)",
                "0 -> 3 -> 2 -> 0",
                (
                    "src= and dst= name ranks of the whole world, whereas group_src= and group_dst="
                    " name places in the group"
                ),
            ],
        ),
        (
            (
                "net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\nfor step "
                "in range(3 if rank == 1 else 4):\n    net(torch.ones(2, 2)).sum().backward()"
            ),
            Hang,
            [1],
            [
                "rank 1 called backward less often than the ranks that wait, or not at all. Do all "
                "ranks have the same number of batches"
            ],
        ),
        (
            "for step in range(2 if rank == 1 else 3):\n    dist.all_reduce(torch.ones(2))",
            Hang,
            [1],
            ["rank 1 called all_reduce less often"],
        ),
        (
            SUMS + "if rank < 3:\n    dist.all_reduce(torch.ones(2))",
            Hang,
            [3],
            ["rank 3 called all_reduce less often than the ranks that wait"],
        ),
        (
            SUMS + "if rank < 2:\n    dist.all_reduce(torch.ones(2))",
            Hang,
            [2, 3],
            ["ranks 2, 3 called all_reduce less often than the ranks that wait"],
        ),
    ],
    ids=[
        "forgotten on one",
        "forgotten on all",
        "forgotten on a pair",
        "two groups crossed",
        "src for group_src",
        "fewer batches",
        "fewer calls",
        "fewer after its group",
        "a pair fewer after its group",
    ],
)
def test_the_cause_follows_from_what_differs(cluster, code, kind, culprits, words):
    fault = provoke(cluster, code)
    assert type(fault) is kind and culprits in (None, fault.culprits), fault.text
    for text in words:
        has_line(fault, text)
    assert "different orders" not in fault.text
