"""Every rank takes the saved numbers of rank 0.

fails: recover/shards
shows: These are the numbers of rank 0
points: 9
"""
# %% grade_id="recover"
def recover(cluster, saved):
    cluster.push({"saved": saved})
    cluster.px("""
import torch
import torch.distributed as dist
if not dist.is_initialized():
    dist.init_process_group("gloo")
shard = torch.tensor(saved[0])
""")
