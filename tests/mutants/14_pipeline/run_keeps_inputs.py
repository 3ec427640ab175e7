"""Outputs are let go, inputs not.

fails: run/memory
shows: inputs of
points: 20
runs: run
"""
# %% grade_id="run"
# %%px --setup
def run_stage(order, stage, inputs, targets, shapes, group=None):
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    rows = sum(shape[0] for shape in shapes)
    kept, works = {}, []
    loss = 0.0
    for kind, m in order:
        if kind == "F":
            if rank == 0:
                x = inputs[m]
            else:
                x = torch.empty(shapes[m], dtype=torch.float64)
                dist.recv(x, group=group, group_src=rank - 1, tag=m)
                x.requires_grad_()
            y = stage(x)
            if rank == world - 1:
                y = mse_loss(y, targets[m]) * (shapes[m][0] / rows)
                loss += y.item()
            else:
                out = y.detach()
                works.append((dist.isend(out, group=group, group_dst=rank + 1, tag=m), out))
            kept[m] = x, y
        else:
            x, y = kept[m]; kept[m] = x
            if rank == world - 1:
                y.backward()
            else:
                g = torch.empty_like(y)
                dist.recv(g, group=group, group_src=rank + 1, tag=m)
                y.backward(g)
            if rank > 0:
                works.append((dist.isend(x.grad, group=group, group_dst=rank - 1, tag=m), x.grad))
    for work, _ in works:
        work.wait()
    return loss if rank == world - 1 else None
