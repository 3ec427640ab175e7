"""The saved whole numbers come back as float32: the job's shards are of another kind than before.

fails: recover/shards
shows: torch.float32
shows: a tensor of whole numbers with one axis
points: 9
runs: recover
"""
# %% grade_id="recover"
def recover(cluster, saved):
    cluster.push({"saved": saved})
    cluster.px("""
import torch
import torch.distributed as dist

if not dist.is_initialized():
    dist.init_process_group("gloo")
shard = torch.Tensor(saved[dist.get_rank()])
""")
