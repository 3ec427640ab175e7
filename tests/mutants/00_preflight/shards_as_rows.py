"""Each shard is a row of a matrix now: an axis more than before.

fails: recover/shards
shows: shape [1,
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
shard = torch.tensor([saved[dist.get_rank()]])
""")
