"""A rehearsal of cells: recorders on the ranks of a cluster, around one `%%px` cell or several."""

import os
from dataclasses import replace

from manyhands.rehearsal.rules import judge
from manyhands.rehearsal.telling import lines, picture
from manyhands.rehearsal.trace import load


class Rehearsed:
    """`with cluster.rehearse() as rehearsal:`: what the ranks ask of torch.distributed in the block is judged when it
    ends. `findings` and `traces` then hold what came of it, `picture` is a drawing where something hangs, else None.

    Communicators are taken as new at the beginning of the block. Where the block raises, nothing is judged.
    """

    def __init__(self, cluster):
        self._cluster, self.findings, self.traces, self.picture = cluster, [], {}, None

    def __enter__(self):
        self._cluster.run(_start)
        return self

    def __exit__(self, kind, error, trace):
        try:
            texts = self._cluster.run(_stop)
        except Exception:
            if error is None:
                raise
            return  # what the block raised says more
        if error is not None:
            return
        self.traces = {rank: [_on_all_ranks(event) for event in load(text)] for rank, text in enumerate(texts)}
        self.findings = judge(self.traces)
        self.picture = picture(self.findings, self.traces)
        print("\n".join(lines(self.findings, self.traces, self._cluster.place)))
        if self.picture is not None:
            from IPython.display import display

            display(self.picture)


def _on_all_ranks(event):
    """The event with the name of its cell alone: each rank has a folder of its own for cells."""
    return replace(event, file=os.path.basename(event.file))


def _start():
    import torch.distributed as dist

    from manyhands.rehearsal.trace_recorder import Recorder

    if getattr(dist, "_manyhands_rehearsal", None) is not None:
        raise RuntimeError("a rehearsal is already running on this rank: end it before the next one begins")
    dist._manyhands_rehearsal = Recorder(gpu_chosen=True)  # by the cluster, see `agent._choose_gpu`
    dist._manyhands_rehearsal.start()


def _stop():
    import torch.distributed as dist

    from manyhands.rehearsal.trace import dump

    recorder, dist._manyhands_rehearsal = getattr(dist, "_manyhands_rehearsal", None), None
    return "" if recorder is None else dump(recorder.stop())
