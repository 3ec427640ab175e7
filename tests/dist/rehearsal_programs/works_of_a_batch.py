"""A batch returns a work of each message with gloo, one of all with NCCL. expect: fails 17 20, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x, y, other = torch.ones(4), torch.empty(4), 1 - dist.get_rank()


def exchange():
    return dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
    )


# two names for one work
sent, received = exchange()
received.wait()
works = exchange()
works[1].wait()
works[0].wait()
dist.destroy_process_group()
