"""The ledger against two that know nothing of it.

They are the switch of the emulated network, and torch's CommDebugMode.

The switch counts what really leaves each of four nodes, the ledger the messages of a model of each
collective (`manyhands.ledger.models`). Where gloo has another algorithm than the model, it stands
in `gloo_sends`.
"""

from pathlib import Path

import pytest

import needs
from manyhands import Cluster
from manyhands.cluster.engines import emulated

pytest.importorskip("torch")
from ledger_programs import PROGRAMS

RANKS = 4
# the barriers around it, and gloo's own heads of messages; a tensor here has 256 KiB
CONTROL_BYTES = 10_000
UNSEEN = {
    "ring of messages": [0],  # messages of torch.distributed are no calls of the dispatcher's
    # of three: the others are called when the one before has ended, on gloo's thread, or on
    # ours if it has by then
    "DDP, PowerSGD hook": [1, 2, 3],
    "ZeroRedundancyOptimizer": [5],
}  # of seven
# CommDebugMode raises around more than one backward
BREAKS = {"DDP, no_sync", "pipeline, GPipe", "pipeline, 1F1B"}


@pytest.fixture(scope="module")
def cluster():
    why = emulated.missing()
    if why:
        needs.lacking("the emulated network", why)
    with Cluster(
        nodes=RANKS,
        ranks_per_node=1,
        framework="torch",
        profile="emulated",
        rate_mbit=2000,
        delay_ms=0,
        name="ledger",
    ) as started:
        started.px(
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport "
            "torch.distributed as dist\ndist.init_process_group('gloo')\nimport ledger_programs",
            setup=True,
        )
        yield started


def gloo_sends(rank, by_call):
    """What gloo sends for these calls, which is mostly what the models say.

    However, it makes a reduce-scatter of a whole all-reduce, and a reduce of a reduce-scatter
    around the ring and a gathering of the parts.
    """
    sent = 0
    for call, nbytes in by_call.items():
        if "reduce_scatter" in call:
            sent += 2 * nbytes
        elif call == "dist.reduce":
            # at the root, 0, the parts that go round: 3/4 of 256 KiB
            sent += nbytes if rank else 3 * 2**16
        else:
            sent += nbytes
    return sent


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_ledger_counts_what_leaves_the_nodes(cluster, name):
    cluster.px(f"ledger_programs.make({name!r}); dist.barrier()")
    before = emulated.sent(cluster)
    cluster.px(f"told = ledger_programs.counted({name!r}); dist.barrier()")
    left = [
        after.payload_bytes - earlier.payload_bytes
        for after, earlier in zip(emulated.sent(cluster), before, strict=True)
    ]
    counted = cluster.pull("told")
    for rank, (nbytes, (by_call, calls)) in enumerate(zip(left, counted, strict=True)):
        assert 0 < nbytes - gloo_sends(rank, by_call) < CONTROL_BYTES, (rank, nbytes, by_call)
        assert calls > 0
    if name not in BREAKS:
        cluster.px(f"theirs = ledger_programs.seen_by_torch({name!r})")
        assert all(
            seen in UNSEEN.get(name, [calls])
            for seen, (_, calls) in zip(cluster.pull("theirs"), counted, strict=True)
        )
