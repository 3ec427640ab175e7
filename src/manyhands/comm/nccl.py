"""Messages for ranks with a GPU each: heads over gloo, the memory of CUDA tensors over NCCL."""

import torch

from manyhands.comm.gloo import GlooWire
from manyhands.comm.message import DTYPES, as_bytes


class NcclWire(GlooWire):
    """As GlooWire; large CUDA tensors go from GPU to GPU, all others as there.

    NCCL carries out the calls of one group one after the other, and a send ends with its receive. So each direction has
    a group of its own: two ranks that send to each other at once do not wait for each other.
    """

    name = "nccl"

    def __init__(self, store, rank, size, device):
        super().__init__(torch.distributed.PrefixStore("heads", store), rank, size)
        self._device = device
        self._groups = {up: torch.distributed.ProcessGroupNCCL(torch.distributed.PrefixStore(f"payloads/{up}", store),
                                                               rank, size) for up in (True, False)}

    def payload(self, tensor):
        return (
            tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)
            if tensor.is_cuda
            else as_bytes(tensor)
        )

    def room(self, spec):
        return torch.empty(spec[2], dtype=DTYPES[spec[0]], device=self._device if spec[1] else "cpu")

    def send_payload(self, peer, number, place, payload, last):
        if not payload.is_cuda:
            return super().send_payload(peer, number, place, payload, last)
        self._under_way[peer].append((number, self._groups[self.rank < peer].send([payload], peer, 0), payload, False))

    def fetch(self, peer, number, place, payload):
        if not payload.is_cuda:
            return super().fetch(peer, number, place, payload)
        self._groups[peer < self.rank].recv([payload], peer, 0).wait()
