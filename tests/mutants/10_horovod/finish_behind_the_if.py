"""Rank 0 alone calls allreduce, and waits for the others for ever.

fails: finish/file, finish/loss
shows: behind `if hvd.rank() == 0`
points: 11
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    if hvd.rank() == 0:
        loss = hvd.allreduce(torch.tensor(loss)).item()
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss
