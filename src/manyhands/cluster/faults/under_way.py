"""The part of a Cluster that looks after calls which outlive the cell that began them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.cluster import check_arguments
from manyhands.cluster.engines.reach import StartLimit, answers
from manyhands.cluster.faults.fault_messages import SENTENCES
from manyhands.cluster.faults.unfinished import describe_first, message_fields

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from manyhands.cluster.check_arguments import Ranks
    from manyhands.cluster.engines.runtime import Runtime
    from manyhands.cluster.faults.restart_lost_ranks import Recovery
    from manyhands.cluster.faults.source_lines import Places
    from manyhands.cluster.faults.unfinished import Namer, Unfinished

ANSWER_S = 20.0
# what is run from there starts no communication
WITHOUT_CALLS = ("manyhands.cluster.", "manyhands.rehearsal.")


class UnderWay:
    """`_unfinished` knows what the ranks have begun and not finished; see unfinished.py."""

    if TYPE_CHECKING:  # what it uses of the Cluster
        _places: Places
        _recovery: Recovery
        _unfinished: Unfinished

        @property
        def world_size(self) -> int:
            """The number of ranks."""

        @property
        def ranks(self) -> list[int]:
            """The numbers of all ranks."""

        def _check_running(self) -> Runtime: ...

    def _ask(self, function: Callable[..., Any], *args: Any) -> dict[int, Any]:
        """Call a function on all ranks, which are idle: {rank: answer}."""
        return answers(
            self._check_running().submit(self.ranks, function, args), StartLimit(ANSWER_S)
        )

    def _say_unfinished(self, cell_file: str, report: bool) -> str:
        """After a cell: what it has left under way, or what was under way when it failed; or ""."""
        if not self._recovery.sound:
            return self._unfinished.before_text(self._namer(cell_file))
        try:
            return self._unfinished.look(self.ranks, self._namer(cell_file), report)
        except Exception:  # noqa: BLE001 - a rank has died or does not answer since: the next use says so
            return ""

    def _namer(self, cell_file: str) -> Namer:
        return lambda lines: self._places.find(lines, cell_file)[:2]

    def _give_up(self, code: str | None, ranks: Ranks | None, report: bool = True) -> None:
        """Before a cell: end what it does not go on with.

        `code` is None for a function that may communicate.
        """
        everywhere = (
            ranks is None or check_arguments.check_ranks(ranks, self.world_size) == self.ranks
        )
        given_up = reported = self._unfinished.left
        try:
            given_up = self._unfinished.to_give_up(code, everywhere)
            if not given_up:
                return
            self._recovery.sound, reported = False, self._unfinished.reported_before(given_up)
            renewed = self._unfinished.give_up(given_up)
        except Exception:  # noqa: BLE001 - a rank has died, or cannot connect any more
            renewed = False
        self._recovery.sound = renewed
        given_up = (reported if report else []) if renewed else given_up
        if given_up:
            sentence = SENTENCES["given up" if renewed else "not given up"]
            sentences = describe_first(
                given_up, lambda call: sentence.format(**message_fields(call, self._namer("")))
            )
            print("\n".join(sentences), flush=True)
        if not renewed:
            self._recovery.restart()
