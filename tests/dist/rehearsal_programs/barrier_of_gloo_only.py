"""monitored_barrier on the default group. expect: fails 7, ranks 2"""
import torch.distributed as dist


dist.init_process_group("gloo")

dist.monitored_barrier()
dist.destroy_process_group()
