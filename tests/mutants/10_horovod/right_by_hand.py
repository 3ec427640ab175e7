"""Right: the gradients are summed by hand, the checkpoint travels as one object, and the losses are gathered."""
# %% grade_id="resume"
# %%px
def resume(model, optimiser, path):
    found = hvd.broadcast_object(torch.load(path) if hvd.rank() == 0 else None, root_rank=0, name="checkpoint")
    model.load_state_dict(found["model"])
    optimiser.load_state_dict(found["optimiser"])
    return found["step"]

# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    n = len(hvd.allgather(y))
    for step in range(steps):
        model.zero_grad()
        cross_entropy(model(x), y, reduction="sum").backward()
        handles = [hvd.allreduce_async_(parameter.grad, op=hvd.Sum) for parameter in model.parameters()]
        for parameter, handle in zip(model.parameters(), handles):
            hvd.synchronize(handle)
            parameter.data -= rate * parameter.grad / n

# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    losses = hvd.allgather_object(loss)
    mean = sum(losses) / len(losses)
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": mean}, path)
    return mean
