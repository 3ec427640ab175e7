"""The parameters get new memory.

fails: masters/moves
shows: A parameter now has different memory
points: 27
runs: masters
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    parameters = list(parameters)
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    with torch.no_grad():
        flat = torch.cat([p.grad.flatten().float() for p in parameters])
        if "master" not in state:
            state["master"] = shard(torch.cat([p.flatten().float() for p in parameters]), rank, ranks)
        master = state["master"]
        master -= lr * reduce_shard(flat, group)
        new = unshard(master.bfloat16(), (len(flat),), group)
        for p, piece in zip(parameters, new.split([p.numel() for p in parameters])):
            p.data = piece.view_as(p).clone()

