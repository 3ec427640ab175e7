"""Makes a process group without asking whether --setup has made one.

fails: recover/world, recover/shards
shows: Ask dist.is_initialized() first
points: 8
"""
# %% grade_id="recover"
def recover(cluster, saved):
    cluster.push({"saved": saved})
    cluster.px("""
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
shard = torch.tensor(saved[dist.get_rank()])
""")
