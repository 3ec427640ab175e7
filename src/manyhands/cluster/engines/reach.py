"""Waiting until new engines can be reached, and how long a cluster's start may wait for that.

ipyparallel drops what it is given for an engine whose connection is not complete yet.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from manyhands.cluster.faults.kinds import ClusterNotStarted
from manyhands.machine import CLUSTER_START_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import ipyparallel as ipp
    import psutil

POLL_S, AGAIN_S = 0.005, 1.0
START_S = float(CLUSTER_START_S)  # for a busy machine: a rank that ends is reported immediately
BUSY = "; the machine may be busy. Run this cell again when it has less to do"
SILENT = "Engines {engines} came, but did not answer within {seconds:g} s" + BUSY + "."


class Result(Protocol):
    """An answer that an engine will give: an `Answer`, or an AsyncResult of ipyparallel's."""

    def ready(self) -> bool:
        """Whether the answer has arrived."""

    def get(self, timeout: float | None = None) -> Any:
        """The answer; TimeoutError after so many seconds, or what the engine raised."""


class StartLimit:
    """How long a start may take: one limit for its controller, imports and ranks together."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = START_S if seconds is None else seconds
        self.begin()

    def begin(self) -> None:
        """Count from now: what came before, a wait in a queue, is not the start's."""
        self._until = time.monotonic() + self.seconds

    @property
    def left_s(self) -> float:
        """The seconds that are left, at least 0."""
        return max(0.0, self._until - time.monotonic())

    def half(self) -> StartLimit:
        """A limit of half of what is left."""
        return StartLimit(self.left_s / 2)


def controller_runs(ipp_cluster: ipp.Cluster) -> bool:
    """Whether the controller of an `ipyparallel.Cluster`, a process of this machine, still runs."""
    process = getattr(ipp_cluster.controller, "process", None)
    return ipp_cluster.controller is not None if process is None else is_running(process)


def is_running(process: psutil.Process) -> bool:
    """Whether a process, of psutil's kind, has not ended."""
    try:
        return process.is_running() and process.status() != "zombie"
    except Exception:  # noqa: BLE001 - psutil: the process has gone
        return False


def answers(asked: Mapping[int, Result], limit: StartLimit) -> dict[int, Any]:
    """{engine: its answer} of {engine: AsyncResult or Answer}. Raises ClusterNotStarted."""
    try:
        return {engine: result.get(timeout=limit.left_s) for engine, result in asked.items()}
    except TimeoutError:
        silent = [engine for engine, result in asked.items() if not result.ready()]
        raise ClusterNotStarted(SILENT.format(engines=silent, seconds=limit.seconds)) from None


def until_answering(client: ipp.Client, engines: Iterable[int], limit: StartLimit) -> None:
    """Ask each engine for its process number until all have answered.

    Those that are silent are asked once more. Raises ClusterNotStarted.

    An engine is announced as soon as its heart beats; its connection for work may be complete a
    moment later, and a message that comes before that is lost. So nothing that matters is sent to
    it before it has answered.
    """
    asked: dict[int, list[Result]] = {engine: [] for engine in engines}
    while asked:
        for engine, results in asked.items():
            results.append(client[engine].apply_async(os.getpid))
        again = time.monotonic() + AGAIN_S
        while asked and time.monotonic() < again:
            time.sleep(POLL_S)
            # any of its answers counts: on a busy machine each may take longer than the time until
            # the next question
            asked = {
                engine: results
                for engine, results in asked.items()
                if not any(result.ready() for result in results)
            }
        if asked and not limit.left_s:
            raise ClusterNotStarted(SILENT.format(engines=list(asked), seconds=limit.seconds))
