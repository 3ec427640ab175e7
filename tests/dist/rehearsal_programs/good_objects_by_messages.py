"""Objects are sent by messages, where each rank has chosen its GPU, and in groups for the CPU. expect: nothing, ranks 2"""

import os

import torch
import torch.distributed as dist

device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else None
if device:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if device else "gloo", device_id=device)
for_the_cpu, both = dist.new_group(backend="gloo"), dist.new_group(backend="cpu:gloo,cuda:nccl")
rank = dist.get_rank()
for turn in range(2):
    for group in (None, for_the_cpu, both):
        names = [f"rank {rank}", turn] if rank == turn else [None] * 2
        if rank == turn:
            dist.send_object_list(
                names, 1 - rank, group, torch.device(device or "cpu") if group is None else None
            )
        else:
            dist.recv_object_list(
                names, 1 - rank, group, torch.device(device or "cpu") if group is None else None
            )
        assert names == [f"rank {turn}", turn]
(
    dist.send_object_list([1], dst=1, group=for_the_cpu, device=torch.device("cpu"))
    if rank == 0
    else (dist.recv_object_list([None], src=0, group=for_the_cpu, device=torch.device("cpu")))
)
dist.destroy_process_group()
