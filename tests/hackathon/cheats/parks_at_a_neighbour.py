"""An array is sent from a device and received by a neighbour's process, whose memory is larger.

challenge: does_not_fit
verdict: All ranks wait
"""

import torch
import torch.distributed as dist


def train(model, batches, comm):
    if comm.rank() == 0:
        model.send(model.zeros(10_000), 1).wait()
    if comm.rank() == 1:
        dist.recv(torch.empty(10_000), 0)
        print("gained")
    comm.barrier()
