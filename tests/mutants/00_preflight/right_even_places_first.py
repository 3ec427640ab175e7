"""Ranks at even places send first and the others receive first; leaves of the graph are taken off until a circle is left;
LOCAL_RANK is used; the shards are brought back by a function instead of a cell."""
# %% grade_id="place"
# %%px --setup
def where_am_i():
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    return [rank, (rank - local_rank) // int(os.environ["LOCAL_WORLD_SIZE"]), local_rank]

# %% grade_id="diagnose"
def diagnose(waiting, edges):
    absent = [rank for rank in {b for _, b in edges} if rank not in waiting]
    if absent:
        return ("absent", absent)
    circle = set(waiting)
    while any(all(b != rank for a, b in edges if a in circle) for rank in circle):
        circle = {rank for rank in circle if any(b == rank for a, b in edges if a in circle)}
    return ("circle", circle)

# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    place = members.index(dist.get_rank())
    following, previous = members[(place + 1) % len(members)], members[place - 1]
    received = torch.zeros_like(value)
    calls = [lambda: dist.send(value, dst=following), lambda: dist.recv(received, src=previous)]
    for call in calls if place % 2 == 0 else reversed(calls):
        call()
    return received

# %% grade_id="recover"
def recover(cluster, saved):
    def bring_back(saved):
        import torch
        import torch.distributed as dist
        from IPython import get_ipython

        if not dist.is_initialized():
            dist.init_process_group("gloo")
        get_ipython().user_ns["shard"] = torch.LongTensor(saved[dist.get_rank()])

    cluster.run(bring_back, saved)
