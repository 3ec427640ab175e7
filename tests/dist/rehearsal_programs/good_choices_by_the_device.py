"""The device of objects is chosen by what there is, in the call and before it. expect: nothing, ranks 2"""

import os

import torch
import torch.distributed as dist

cuda = torch.cuda.is_available()
if cuda:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl" if cuda else "gloo")
device = torch.device("cuda" if cuda else "cpu")
names = [dist.get_rank(), "cpu"]
dist.broadcast_object_list(names, src=0, device=torch.device("cuda" if cuda else "cpu"))
dist.broadcast_object_list(
    names, src=0, device=torch.device("cuda") if cuda else torch.device("cpu")
)
dist.broadcast_object_list(names, 0, None, cuda and torch.device("cuda") or torch.device("cpu"))
dist.broadcast_object_list([names[0], "cpu"], src=0, device=device)
names[1] = (
    torch.device("cpu"),
    dist.broadcast_object_list(names, src=0, device=device),
)  # "cpu" without a GPU
dist.destroy_process_group()
