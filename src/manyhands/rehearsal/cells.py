"""A rehearsal of cells: recorders on the ranks of a cluster, around one `%%px` cell or several."""

from __future__ import annotations

import os
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from manyhands.rehearsal.rehearsal_report import describe_findings, draw_hang
from manyhands.rehearsal.rules import judge
from manyhands.rehearsal.trace import load

if TYPE_CHECKING:
    from manyhands.cluster.cluster import Cluster
    from manyhands.plots import Svg
    from manyhands.rehearsal.rules import Finding
    from manyhands.rehearsal.trace import Event
    from manyhands.rehearsal.trace_recorder import Recorder


class CellRehearsal:
    """Records what the ranks ask of torch.distributed in a block, and judges it when it ends.

    `with cluster.rehearse() as rehearsal:`. `findings` and `traces` then hold what came of it,
    `picture` is a drawing where something hangs, else None.

    Communicators are taken as new at the beginning of the block. Where the block raises, nothing is
    judged.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.findings: list[Finding] = []
        self.traces: dict[int, list[Event]] = {}
        self.picture: Svg | None = None

    def __enter__(self) -> CellRehearsal:
        self._cluster.run(_start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            texts = self._cluster.run(_stop)
        except Exception:
            if error is None:
                raise
            return  # what the block raised says more
        if error is not None:
            return
        self.traces = {
            rank: [_on_all_ranks(event) for event in load(text)] for rank, text in enumerate(texts)
        }
        self.findings = judge(self.traces)
        self.picture = draw_hang(self.findings, self.traces)
        print("\n".join(describe_findings(self.findings, self.traces, self._cluster.place)))
        if self.picture is not None:
            from IPython.display import display

            display(self.picture)


def _on_all_ranks(event: Event) -> Event:
    """The event with the name of its cell alone: each rank has a folder of its own for cells."""
    return replace(event, file=os.path.basename(event.file))


def _start() -> None:
    import torch.distributed as dist

    from manyhands.rehearsal.trace_recorder import Recorder

    if getattr(dist, "_manyhands_rehearsal", None) is not None:
        raise RuntimeError(
            "a rehearsal is already running on this rank: end it before the next one begins"
        )
    # by the cluster, see `agent._choose_gpu`
    # our own attribute
    recorder = dist._manyhands_rehearsal = Recorder(gpu_chosen=True)  # type: ignore[attr-defined]
    recorder.start()


def _stop() -> str:
    import torch.distributed as dist

    from manyhands.rehearsal.trace import dump

    recorder: Recorder | None = getattr(dist, "_manyhands_rehearsal", None)
    dist._manyhands_rehearsal = None  # type: ignore[attr-defined]  # our own attribute
    return "" if recorder is None else dump(recorder.stop())
