"""Objects are sent by messages: on a GPU that nobody chose, and on the CPU. expect: may hang 14 15; fails 16 17, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
both, device = (
    dist.new_group(backend="cpu:gloo,cuda:nccl"),
    torch.device("cuda" if torch.cuda.is_available() else "cpu"),
)
first, peer = dist.get_rank() == 0, 1 - dist.get_rank()
call, names = (dist.send_object_list, [1, 2]) if first else (dist.recv_object_list, [None] * 2)

call(names, peer)
call(names, peer, use_batch=True)
call(names, peer, device=torch.device("cpu"))
call(names, peer, None, "cpu")
call(names, peer, both)
call(names, peer, both, torch.device("cpu"))
call(names, peer, both, device)
dist.destroy_process_group()
