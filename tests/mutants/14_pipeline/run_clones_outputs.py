"""A clone of each output is kept forever.

fails: run/memory
shows: Does a list or a variable keep something of each micro-batch
points: 20
runs: run
"""
# %% grade_id="run"
# %%px --setup
ALL = []
def run_stage(order, stage, inputs, targets, shapes, group=None):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    rows = sum(shape[0] for shape in shapes)
    kept, sent_f, sent_b, total = {}, {}, [], 0.0
    for kind, m in order:
        if kind == "F":
            if rank == 0:
                x = inputs[m]
            else:
                x = torch.empty(shapes[m], dtype=torch.float64)
                dist.recv(x, group=group, group_src=rank - 1, tag=m)
                x.requires_grad_()
            y = stage(x)
            if rank == size - 1:
                y = mse_loss(y, targets[m]) * (shapes[m][0] / rows)
                total += y.item()
            else:
                sent_f[m] = dist.isend(y.detach(), group=group, group_dst=rank + 1, tag=m)
            kept[m] = x, y
            ALL.append(y.detach().clone())
        else:
            x, y = kept.pop(m)
            if rank == size - 1:
                y.backward()
            else:
                grad = torch.empty_like(y)
                dist.recv(grad, group=group, group_src=rank + 1, tag=m)
                sent_f.pop(m).wait()
                y.backward(grad)
            if rank > 0:
                sent_b.append(dist.isend(x.grad, group=group, group_dst=rank - 1, tag=m))
            del x, y
    for work in sent_b:
        work.wait()
    return total if rank == size - 1 else None
