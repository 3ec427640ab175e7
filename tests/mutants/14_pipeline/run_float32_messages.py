"""Messages are float32.

fails: run/gradients, run/messages
shows: is right to only a few digits, probably because something on the way is float32
shows: they have half the bytes, as if they were float32
points: 18
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
                x = torch.empty(shapes[m])
                dist.recv(x, group=group, group_src=rank - 1, tag=m)
                x = x.double().requires_grad_()
            y = stage(x)
            if rank < last: sent.append(dist.isend(y.detach().float(), group=group, group_dst=rank + 1, tag=m))
            else:
                y = mse_loss(y, targets[m]) * shapes[m][0] / rows
                loss += y.item()
            kept[m] = x, y
        else:
            x, y = kept.pop(m)
            g = None
            if rank < last:
                g = torch.empty(y.shape)
                dist.recv(g, group=group, group_src=rank + 1, tag=m)
                g = g.double()
            y.backward(g)
            if rank > 0: sent.append(dist.isend(x.grad.float(), group=group, group_dst=rank - 1, tag=m))
    for work in sent: work.wait()
    return loss if rank == last else None
