"""How long it takes to judge a trace, and what a step costs beside a rehearsal.

`python -m benchmarks rehearsal`

All seconds are processor time, which other work on the machine changes little. The step is that of
unit 06: its network under DistributedDataParallel (one rank, gloo): before this process has heard
of a rehearsal, while one is under way, and when it has ended.
"""

import statistics
import tempfile
import time
from pathlib import Path

from manyhands.elastic.mortal import in_process

from . import few

EVENTS, RANKS, STEPS, BLOCKS = few(10_000, 400), 4, few(500, 20), few(9)


def traces(rounds, size=RANKS):
    """The trace of each rank: messages and an all-reduce, so many times.

    It has a batch of messages around a ring, an all-reduce, and both waits.
    """
    from manyhands.rehearsal import Event, Layout, Part

    ranks, layout = tuple(range(size)), Layout(shape=(4,))
    events_by_rank = {}
    for rank in ranks:
        events = events_by_rank[rank] = []
        parts = (
            Part("send", (rank + 1) % size, 0, layout),
            Part("recv", (rank - 1) % size, 0, layout),
        )
        for _ in range(rounds):
            at = len(events)
            events += [
                Event(
                    "message",
                    call="batch_isend_irecv",
                    group="0",
                    ranks=ranks,
                    parts=parts,
                    is_async=True,
                    line=1,
                ),
                Event("wait", of=at, line=2),
                Event(
                    "collective",
                    call="all_reduce",
                    group="0",
                    ranks=ranks,
                    tensors=(layout,),
                    op="SUM",
                    is_async=True,
                    line=3,
                ),
                Event("wait", of=at + 2, line=4),
            ]
    return events_by_rank


def judge_s(events):
    """The processor seconds that it takes to judge traces of so many events."""
    from manyhands.rehearsal import judge

    made = traces(events // 4)
    begun = time.process_time()
    assert judge(made) == []
    return time.process_time() - begun


def steps_s(store):
    """{way: the processor time of a step}, in this process.

    It is the quickest tenth's slowest, of steps in a row.
    """
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    dist.init_process_group("gloo", store=dist.FileStore(store, 1), rank=0, world_size=1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.rand(64, 64), torch.randint(10, (64,))

    def tenth_s():
        taken = []
        for _ in range(STEPS):
            begun = time.process_time()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            taken.append(time.process_time() - begun)
        return sorted(taken)[STEPS // 10]

    tenth_s()  # warms up
    seconds_by_way = {"before": tenth_s()}
    from manyhands.rehearsal.trace_recorder import Recorder

    recorder = Recorder()
    recorder.start()
    seconds_by_way["under way"] = tenth_s()
    recorder.stop()
    return {**seconds_by_way, "ended": tenth_s()}


def main(names=()):
    """Print how long traces take to judge, and what a step costs with and without a rehearsal."""
    import torch  # noqa: F401 (the forks have it then)

    for events in (EVENTS // 10, EVENTS):
        print(
            f"{events:,} events of each of {RANKS} ranks judged: {judge_s(events):.2f} s",
            flush=True,
        )
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        for block in range(BLOCKS):
            outcome = in_process(steps_s, str(Path(folder, str(block))), limit_s=300)
            assert not outcome.error, outcome.error
            outcomes.append(outcome.value)
    for way in outcomes[0]:
        ratios = [seconds[way] / seconds["before"] for seconds in outcomes]
        print(
            f"rehearsal {way}: a step takes "
            f"{statistics.median(seconds[way] for seconds in outcomes) * 1e3:.3f} ms, "
            f"{statistics.median(ratios):.2f} of one before ({min(ratios):.2f} to "
            f"{max(ratios):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
