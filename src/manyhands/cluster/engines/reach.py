"""Waiting until new engines can be reached: ipyparallel drops what it is given for an engine whose connection is not
complete yet."""

import os
import time

from manyhands.cluster.faults.kinds import ClusterNotStarted

POLL_S, AGAIN_S, LIMIT_S = 0.005, 1.0, 180.0
SILENT = "Engines {engines} came, but did not answer within {seconds:.0f} s; the machine may be busy."


def controller_runs(ipp_cluster):
    """Whether the controller of an `ipyparallel.Cluster`, a process of this machine, still runs."""
    process = getattr(ipp_cluster.controller, "process", None)
    return ipp_cluster.controller is not None if process is None else is_running(process)


def is_running(process):
    """Whether a process, of psutil's kind, has not ended."""
    try:
        return process.is_running() and process.status() != "zombie"
    except Exception:  # psutil: the process has gone
        return False


def until_answering(client, engines):
    """Ask each engine for its process number, and those that are silent once more, until all have answered.
    Raises ClusterNotStarted.

    An engine is told of as soon as its heart beats; its connection for work may be complete a moment later, and a
    message that comes before that is lost. So nothing that matters is sent to it before it has answered.
    """
    asked, deadline = {engine: [] for engine in engines}, time.monotonic() + LIMIT_S
    while asked:
        for engine, answers in asked.items():
            answers.append(client[engine].apply_async(os.getpid))
        again = time.monotonic() + AGAIN_S
        while asked and time.monotonic() < again:
            time.sleep(POLL_S)
            # any of its answers counts: on a busy machine each may take longer than the time until the next question
            asked = {engine: answers for engine, answers in asked.items()
                     if not any(answer.ready() for answer in answers)}
        if asked and time.monotonic() > deadline:
            raise ClusterNotStarted(SILENT.format(engines=list(asked), seconds=LIMIT_S))
