"""The line that a cell shows while ranks wait in communication.

It says what each rank was last seen to do.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from manyhands.cluster.faults.explain import locate_rank
from manyhands.cluster.faults.fault_messages import SENTENCES, of_ranks, ranks_text
from manyhands.cluster.faults.watch import STALE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manyhands.cluster.faults.source_lines import Places
    from manyhands.cluster.faults.watch import Watch

WAITING_S = 2.0  # of a shorter wait nothing is shown: most ranks wait for a moment in most calls
ORDER = "waits", "computes", "silent", "finished", "raised", "died"


def describe_waiting(watch: Watch, places: Places, cell_file: str) -> str:
    """The line about the ranks of a running `Watch`, or "" while no rank has waited for long.

    For example `Ranks 0, 1, 3 have been in barrier for 4 s; rank 2 has finished.`, from their
    reports. It may be called from any thread.
    """
    seen = {rank: _seen(rank, watch, places, cell_file) for rank in watch.asked}
    if (
        max((seconds for state, _, seconds in seen.values() if state == "waits"), default=0)
        < WAITING_S
    ):
        return ""
    alike: dict[tuple[str, str], dict[int, float]] = {}
    for rank, (state, call, seconds) in seen.items():
        alike.setdefault((state, call), {})[rank] = seconds
    clauses = [
        _clause(state, call, seconds)
        for (state, call), seconds in sorted(
            alike.items(),
            key=lambda item: (ORDER.index(item[0][0]), -max(item[1].values()), min(item[1])),
        )
    ]
    text = "; ".join(clauses)
    return text[:1].upper() + text[1:] + "."


def _seen(rank: int, watch: Watch, places: Places, cell_file: str) -> tuple[str, str, float]:
    """(state, call, for how many seconds) of a rank, as far as it was seen."""
    outcome, reports = watch.outcome, watch.reports
    if rank in outcome.exits:
        return "died", "", 0
    if rank in outcome.errors or rank in outcome.results:
        return (
            "raised" if rank in outcome.errors or not outcome.results[rank]["ok"] else "finished",
            "",
            0,
        )
    report, heard = reports.newest.get(rank), reports.heard.get(rank)
    if report is None or heard is None or report["cell"] != watch.cell:
        return "silent", "", time.monotonic() - watch.started
    unheard_s = time.monotonic() - heard
    if unheard_s > STALE_S:
        return "silent", "", unheard_s
    if not report["blocked"]:
        return "computes", "", 0
    return (
        "waits",
        locate_rank(rank, report, watch.cell, cell_file, places).call,
        reports.blocked_s(rank, watch.cell),
    )


def _clause(state: str, call: str, seconds: Mapping[int, float]) -> str:
    """What is said of the ranks in `seconds`, {rank: for how long}."""
    least, most = int(min(seconds.values())), int(max(seconds.values()))
    span = f"{least}" if least == most else SENTENCES["live span"].format(least=least, most=most)
    sentence = "live waits somewhere" if state == "waits" and not call else f"live {state}"
    return (
        f"{ranks_text(seconds)} "
        f"{of_ranks(seconds, SENTENCES[sentence].format(call=call, seconds=span))}"
    )
