"""Begins to receive, sends, then waits; walks the circle by recursion; gives each rank its own cell."""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    def blamed(rank, way):
        if rank not in waiting:
            return "absent", sorted({b for a, b in edges if b not in waiting})
        if rank in way:
            return "circle", way[way.index(rank):]
        targets = [b for a, b in edges if a == rank]
        return blamed(next((b for b in targets if b not in waiting), targets[0]), way + [rank])

    return blamed(next(iter(waiting)), [])

# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    place = members.index(rank)
    received = torch.empty_like(value)
    request = dist.irecv(received, src=members[(place - 1) % len(members)])
    dist.send(value, dst=members[(place + 1) % len(members)])
    request.wait()
    return received

# %% grade_id="recover"
def recover(cluster, saved):
    for rank, numbers in enumerate(saved):
        cluster.px(f"import torch\nshard = torch.tensor({numbers})", ranks=[rank])
    cluster.px("import torch.distributed as dist\nif not dist.is_initialized():\n    dist.init_process_group('gloo')")
