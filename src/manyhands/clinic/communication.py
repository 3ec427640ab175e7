"""Records what a rank sends in the recorded steps: which call, to which ranks, when, and what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from manyhands.clinic.clinic_limits import RECORDED_MESSAGES

if TYPE_CHECKING:
    import torch

    from manyhands.clinic.records import Message
    from manyhands.ledger.entry import Entry


class CommunicationObserver:
    """A listener of the ledger's taps, until `close`.

    `phase()` is where in a step the script is.
    """

    def __init__(
        self, phase: Callable[[], str], parameters: Callable[[], Iterable[torch.Tensor]]
    ) -> None:
        self.log, self._phase, self._parameters = _EmptyLog(), phase, parameters
        self._noted: list[Message] = []
        self._open = False
        try:
            from manyhands.ledger import taps

            taps.listen(self)
            self._open = True
        except Exception:  # noqa: BLE001 - a version of torch whose calls cannot be heard: the clinic does without
            pass

    def add(self, entry: Entry, given: Sequence[Any] = ()) -> None:
        """Note a call of torch.distributed as it begins, up to `RECORDED_MESSAGES` of a step."""
        from manyhands.ledger.entry import CALLS, tensors_in

        if len(self._noted) >= RECORDED_MESSAGES:
            return
        place = CALLS.get(entry.call)
        tensors = tensors_in(given[place]) if place is not None and len(given) > place else []
        shape = list(tensors[0].shape) if len(tensors) == 1 else None
        two = entry.call in ("send", "recv") and 0 <= entry.peer < len(entry.ranks)
        peer = entry.ranks[entry.peer] if two else None
        phase = self._phase()
        self._noted.append(
            {
                "phase": phase,
                "call": entry.call.strip("_").replace("_", ""),
                "ranks": tuple(entry.ranks),
                "peer": peer,
                "numel": entry.numel,
                "shape": shape,
                "native": entry.native,
                "follows": any(tensor.requires_grad for tensor in tensors),
                "of": self._of(tensors, phase) if tensors else "",
            }
        )

    def _of(self, tensors: list[torch.Tensor], phase: str) -> Literal["", "gradients", "weights"]:
        """Say whether these tensors share memory with the script's "gradients" or "weights".

        "" where they are neither.
        """
        if phase in ("forward", "between"):
            return ""
        places = {_memory_address(tensor) for tensor in tensors}
        for parameter in self._parameters():
            if parameter.grad is not None and _memory_address(parameter.grad) in places:
                return "gradients"
            if _memory_address(parameter) in places:
                return "weights"
        return ""

    def take(self) -> list[Message]:
        """Return what was noted since the last `take`."""
        noted, self._noted = self._noted, []
        return noted

    def close(self) -> None:
        """Stop listening to the ledger's taps; a second call does nothing."""
        if self._open:
            from manyhands.ledger import taps

            taps.leave(self)
            self._open = False


class _EmptyLog:
    """The log of a ledger that keeps none."""

    def append(self, event: object) -> None:
        pass

    def __len__(self) -> int:
        return 0


def _memory_address(tensor: Any) -> int:
    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    local = local._values() if local.is_sparse else local
    return local.untyped_storage().data_ptr()


def sums_gradients(message: Message) -> bool:
    """Whether this message may be a sum of gradients.

    It is recognised by its memory, or as a sum that DDP or FSDP makes in backward.
    """
    summed = message["call"].startswith(("allreduce", "reducescatter"))
    return len(message["ranks"]) > 1 and (
        (message["of"] == "gradients" and message["phase"] in ("backward", "after", "step"))
        or (summed and message["native"] and message["phase"] == "backward")
        or (
            summed
            and message["phase"] in ("backward", "after", "step")
            and message["numel"] > 1
            and not message["of"]
        )
    )
