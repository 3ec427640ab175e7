"""monitored_barrier on the default group, and on one that is NCCL's where there are GPUs. expect: fails 8 10, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")

dist.monitored_barrier()
chosen = dist.new_group(backend="nccl" if torch.cuda.is_available() else "gloo")
dist.monitored_barrier(chosen)
dist.destroy_process_group()
