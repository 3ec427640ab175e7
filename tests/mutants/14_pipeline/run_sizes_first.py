"""The number of rows is sent before each activation: twice the messages.

fails: run/messages
shows: There were more messages than needed
points: 20
"""
# %% grade_id="run"
# %%px --setup
def run_stage(order, stage, inputs, targets, shapes, group=None):
    """Run this rank's part of one step, and add the gradients to those of the stage's parameters.

    order: [("F", 0), ...]. stage: a module. inputs: on the first stage a tensor for each micro-batch, else None. targets: on the last stage, else None.
    shapes: for each micro-batch, the shape of what comes in here; everything is float64. The first axis counts rows.
    Returns the loss of the whole batch on the last stage, as a float; None elsewhere.
    """
    rank, last = dist.get_rank(group), dist.get_world_size(group) - 1
    rows, kept, sent, loss = sum(shape[0] for shape in shapes), {}, [], 0.0

    def receive(shape, source, m):
        x = torch.empty(shape, dtype=torch.float64)
        dist.recv(x, group=group, group_src=source, tag=m)
        return x

    for kind, m in order:
        if kind == "F":
            if rank > 0:
                dist.recv(torch.zeros(1, dtype=torch.int64), group=group, group_src=rank - 1, tag=100 + m)
            x = inputs[m] if rank == 0 else receive(shapes[m], rank - 1, m).requires_grad_()
            y = stage(x)
            if rank < last:
                sent.append(dist.isend(torch.tensor([len(y)]), group=group, group_dst=rank + 1, tag=100 + m))
            if rank < last:
                sent.append(dist.isend(y.detach(), group=group, group_dst=rank + 1, tag=m))
            else:
                y = mse_loss(y, targets[m]) * shapes[m][0] / rows
                loss += y.item()
            kept[m] = x, y
        else:
            x, y = kept.pop(m)
            y.backward(None if rank == last else receive(y.shape, rank + 1, m))
            if rank > 0:
                sent.append(dist.isend(x.grad, group=group, group_dst=rank - 1, tag=m))
    for work in sent:
        work.wait()
    return loss if rank == last else None
