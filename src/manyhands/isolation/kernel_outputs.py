"""What a kernel says of a cell, as the cell's outputs: broken messages and floods are dropped."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import nbformat

from manyhands.isolation.json_weight import count_pieces

if TYPE_CHECKING:
    from jupyter_client.session import Session

    from manyhands.grading.compare import Output

KEPT_BYTES, KEPT_PIECES = 5_000_000, 200_000  # of one cell's output
# of a message's header, its parent and its metadata, each: real ones have a few hundred
HEAD_BYTES = 2**14


def prepare() -> None:
    """Build what nbformat checks outputs with.

    Processes that are forked afterwards share its 10 MiB.
    """
    nbformat.v4.new_output("stream")


@dataclass
class CellRun:
    """One cell's run.

    It has outputs (as nbformat has them), its error if it raised one, and whether it was
    interrupted.
    """

    outputs: list[Output] = field(default_factory=list)
    error: str = ""
    interrupted: bool = False


class Outputs:
    """Turns messages about one request into what `ran` holds.

    The request's id is `cell`; `session` is jupyter_client's.
    """

    def __init__(self, session: Session, cell: str, ran: CellRun) -> None:
        self.session, self.cell, self.ran = session, cell, ran
        self.by_display_id: dict[str, list[Output]] = {}
        self.clear_next = False
        self.bytes, self.pieces = KEPT_BYTES, KEPT_PIECES  # that are left

    def add(self, parts: list[bytes]) -> bool:
        """Take in one message, as its parts; True when it says that the cell is done."""
        with suppress(Exception):  # nothing that a kernel sends may stop the grader
            _, rest = self.session.feed_identities(parts)
            if max(map(len, rest[1:4])) > HEAD_BYTES:
                return False
            message = self.session.deserialize(rest, content=False)
            if message["parent_header"].get("msg_id") == self.cell:
                return self._add(message["msg_type"], message)
        return False

    def _add(self, kind: str, message: dict[str, Any]) -> bool:
        packed = message["content"]
        if kind == "status":
            return (
                len(packed) <= HEAD_BYTES
                and self.session.unpack(packed).get("execution_state") == "idle"
            )
        if self._room_for(packed):
            message["content"] = self.session.unpack(packed)
            self._output(kind, message["content"], message, packed)
        return False

    def _room_for(self, packed: bytes, times: int = 1) -> bool:
        """Take the room for this content, so many times; whether there is so much."""
        if times > 0:
            self.bytes -= times * len(packed)
            self.pieces -= (
                times * count_pieces(packed, max(0, self.pieces) + 1) if self.bytes >= 0 else 0
            )
        return self.bytes >= 0 and self.pieces >= 0

    def _output(
        self, kind: str, content: dict[str, Any], message: dict[str, Any], packed: bytes
    ) -> None:
        if kind == "clear_output":
            self.clear_next = bool(content.get("wait"))
            if not self.clear_next:
                self.ran.outputs.clear()
        elif kind == "update_display_data":
            outputs = self.by_display_id.get(content["transient"]["display_id"], [])
            if self._room_for(packed, len(outputs) - 1):
                data = nbformat.from_dict(content["data"])  # the same for all of them
                for output in outputs:
                    output.update(data=data)
        elif kind in ("stream", "display_data", "execute_result", "error"):
            output = nbformat.v4.output_from_msg(message)
            if self.clear_next:
                self.ran.outputs.clear()
                self.clear_next = False
            self.ran.outputs.append(output)
            if kind == "error" and not self.ran.error:
                self.ran.error = f"{content['ename']}: {content['evalue']}"
            display_id = (content.get("transient") or {}).get("display_id")
            if display_id:
                self.by_display_id.setdefault(display_id, []).append(output)
