"""Makes a process group, but brings nothing back.

fails: recover/shards
shows: There is no variable `shard` on this rank
points: 9
"""
# %% grade_id="recover"
def recover(cluster, saved):
    cluster.px("import torch.distributed as dist\nif not dist.is_initialized():\n    dist.init_process_group('gloo')")
