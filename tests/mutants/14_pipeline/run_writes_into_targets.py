"""The difference to the targets is written into them.

fails: run/gradients
shows: run_stage has changed targets[0], which belongs to its caller
points: 19
runs: run
"""
# %% grade_id="run"
# %%px --setup
def run_stage(order, stage, inputs, targets, shapes, group=None):
    rank, last = dist.get_rank(group), dist.get_world_size(group) - 1
    rows, kept, sent, loss = sum(s[0] for s in shapes), {}, [], 0.0
    for kind, m in order:
        if kind == "F":
            if rank == 0: x = inputs[m]
            else:
                x = torch.empty(shapes[m], dtype=torch.float64)
                dist.recv(x, group=group, group_src=rank - 1, tag=m)
                x.requires_grad_()
            y = stage(x)
            if rank < last: sent.append(dist.isend(y.detach(), group=group, group_dst=rank + 1, tag=m))
            else:
                y = (targets[m].sub_(y.detach()).square().mean().item(), y, targets[m])
                loss += y[0] * shapes[m][0] / rows
            kept[m] = x, y
        else:
            x, y = kept.pop(m)
            if rank < last:
                g = torch.empty(y.shape, dtype=torch.float64)
                dist.recv(g, group=group, group_src=rank + 1, tag=m)
                y.backward(g)
            else:
                _, y, d = y
                y.backward(-2 * d / d.numel() * shapes[m][0] / rows)
            if rank > 0: sent.append(dist.isend(x.grad, group=group, group_dst=rank - 1, tag=m))
    for work in sent: work.wait()
    return loss if rank == last else None
