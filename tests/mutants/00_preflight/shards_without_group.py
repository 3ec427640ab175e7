"""Relies on --setup for the process group.

fails: recover/world, recover/shards
shows: recover must make one if none exists
points: 8
"""
# %% grade_id="recover"
def recover(cluster, saved):
    cluster.push({"saved": saved})
    cluster.px("import os, torch\nshard = torch.tensor(saved[int(os.environ['RANK'])])")
