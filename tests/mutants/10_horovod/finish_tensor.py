"""The mean is returned as a tensor.

fails: finish/loss
shows: but it must return a float
points: 12
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    loss = hvd.allreduce(torch.tensor(loss, dtype=torch.float64), name="loss")
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss.item()}, path)
    return loss
