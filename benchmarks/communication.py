"""Forward and backward of our functions between two ranks, against their peers.

The peers are the same messages by hand, torch's own functions, and the real ChainerMN.

All are measured in one run, in blocks that alternate: one block runs, everybody else sleeps. Sizes are those of one
message. Peers:
* by hand: a header with the shape, then the payload, in both directions, inside an autograd function that does nothing
  else. The target's peer.
* loop: the same messages in a loop without autograd. No target: it shows what autograd itself costs.
* collective: the backend's own Bcast, Allgather, Alltoall after a header, inside the same autograd function. No target.
* torch.distributed.nn.functional, over gloo only. It has no send and recv. No target.
* ChainerMN 7.8.1, over MPI only, with its fastest shape: one row (it makes a graph node of each row that it sends).
  Built once, in a cache folder.
"""

import sys
import tempfile
from pathlib import Path

from manyhands.cluster.launch.command_lines import mpiexec

from . import SMOKE, chainermn_venv, few
from .pairs import ratio_line
from .turns import Job

HERE = Path(__file__).parent
SIZES = {"1 KB": 2**10, "1 MB": 2**20, "16 MB": 2**24}
CALLS = ("send, recv", "bcast", "allgather", "alltoall")
BLOCKS, BLOCK_S, STEPS = few(15), 0.03, (3, 300)


def main():
    """Measure each call and size against its peers, and give the lines of the table."""
    if SMOKE:  # without ChainerMN, which takes half a minute to install
        yield from smoke()
        return
    python = chainermn_venv.python()
    with tempfile.TemporaryDirectory() as folder:
        ours = Job(
            mpiexec(),
            sys.executable,
            HERE / "communication_rank.py",
            {"TURNS_STORE": str(Path(folder) / "store")},
        )
        chainermn = Job(mpiexec(python), str(python), HERE / "communication_chainermn.py", {})
        try:
            for backend in ("mpi", "gloo"):
                for call in CALLS:
                    for size in SIZES:
                        yield from lines(ours, chainermn, backend, call, size)
            yield many_rows(ours, chainermn)
            yield ledger_line(ours)
        finally:
            ours.close()
            chainermn.close()


def smoke():
    """One call of one size without ChainerMN, to show that the benchmark starts."""
    with tempfile.TemporaryDirectory() as folder:
        ours = Job(
            mpiexec(),
            sys.executable,
            HERE / "communication_rank.py",
            {"TURNS_STORE": str(Path(folder) / "store")},
        )
        try:
            yield from lines(ours, None, "gloo", "bcast", "1 KB")
        finally:
            ours.close()


def measure(contestants, case, blocks=BLOCKS, steps=None):
    """{name: [microseconds of a step, one for each block]}; contestants: {name: job}.

    The first of each round changes.
    """
    names, times_us = list(contestants), {name: [] for name in contestants}
    least, most = STEPS
    counts = steps or {
        name: min(max(int(BLOCK_S / contestants[name].block(name, case, least)), least), most)
        for name in names
    }
    for turn in range(blocks):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times_us[name].append(contestants[name].block(name, case, counts[name]) * 1e6)
    return times_us


def lines(ours, chainermn, backend, call, size):
    """The rows of one call and size: (peer, its words, target)."""
    peers = [
        (f"autograd over {backend}", "by hand", 1.5 if size == "1 KB" else 1.15),
        (f"loop over {backend}", "loop by hand", None),
    ]
    if call != "send, recv":
        peers.append((f"collective over {backend}", f"{backend}'s collective", None))
        if backend == "gloo":
            peers.append(("torch", "torch.distributed.nn", None))
    if backend == "mpi":
        peers.append(("chainermn", "ChainerMN", 1.0))
    me = f"ours over {backend}"
    times_us = measure(
        {me: ours} | {name: chainermn if name == "chainermn" else ours for name, _, _ in peers},
        (call, (1, SIZES[size] // 4)),
    )
    for name, words, target in peers:
        yield ratio_line(
            f"{call}, {backend}, {size}: {words}", times_us[me], times_us[name], "us", target
        )


def many_rows(ours, chainermn):
    """A 1-D tensor: ChainerMN builds a graph node for each of its elements."""
    # one takes it seconds
    jobs, steps = (
        {"ours over mpi": ours, "chainermn": chainermn},
        {"ours over mpi": 50, "chainermn": 1},
    )
    times_us = measure(jobs, ("send, recv", (2**18,)), blocks=3, steps=steps)
    return ratio_line(
        "send, recv, mpi, 1-D of 262,144 elements: ChainerMN",
        times_us["ours over mpi"],
        times_us["chainermn"],
        "us",
        0.2,
    )


def ledger_line(ours):
    """Our functions inside a ledger against the same ones outside, in turn.

    There are many long blocks, as the difference is small.

    To open a ledger takes a millisecond, and leaves the processor's caches cold for the first
    steps: in a long block this does not count.
    """
    jobs = {"ours, ledger on over mpi": ours, "ours over mpi": ours}
    times_us = measure(
        jobs, ("send, recv", (1, 2**18)), blocks=3 * BLOCKS, steps=dict.fromkeys(jobs, 300)
    )
    return ratio_line(
        "send, recv, mpi, 1 MB, ledger on: ledger off", *times_us.values(), "us", 1.03
    )
