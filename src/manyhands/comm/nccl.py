"""Messages for ranks with a GPU each: heads over gloo, the memory of CUDA tensors over NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from manyhands.comm.gloo import GlooWire
from manyhands.comm.message import DTYPES, as_bytes

if TYPE_CHECKING:
    from torch.distributed import Store

    from manyhands.comm.message import Spec


class NcclWire(GlooWire):
    """As GlooWire; large CUDA tensors go from GPU to GPU, all others as there.

    NCCL carries out the calls of one group one after the other, and a send ends with its receive.
    So each direction has a group of its own: two ranks that send to each other at once do not wait
    for each other.
    """

    name = "nccl"

    def __init__(self, store: Store, rank: int, size: int, device: torch.device) -> None:
        super().__init__(torch.distributed.PrefixStore("heads", store), rank, size)
        self._device = device
        # torch's stubs ask for options, and leave out send and recv
        nccl: Any = torch.distributed.ProcessGroupNCCL
        self._groups = {
            up: nccl(torch.distributed.PrefixStore(f"payloads/{up}", store), rank, size)
            for up in (True, False)
        }

    def payload(self, tensor: torch.Tensor) -> torch.Tensor:
        """The bytes of a tensor, on its GPU if it has one."""
        return (
            tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)
            if tensor.is_cuda
            else as_bytes(tensor)
        )

    def buffer(self, spec: Spec) -> torch.Tensor:
        """An empty tensor for what comes: on this rank's GPU if it came from a GPU."""
        return torch.empty(
            spec[2], dtype=DTYPES[spec[0]], device=self._device if spec[1] else "cpu"
        )

    def send_payload(
        self, peer: int, number: int, index: int, payload: torch.Tensor, last: bool
    ) -> None:
        """Send a payload, from GPU to GPU if it is on one."""
        if not payload.is_cuda:
            return super().send_payload(peer, number, index, payload, last)
        self._under_way[peer].append(
            (number, self._groups[self.rank < peer].send([payload], peer, 0), payload, False)
        )

    def fetch(self, peer: int, number: int, index: int, payload: torch.Tensor) -> None:
        """Receive a payload that the peer has announced; returns when it is there."""
        if not payload.is_cuda:
            return super().fetch(peer, number, index, payload)
        self._groups[peer < self.rank].recv([payload], peer, 0).wait()
