"""Rank 0 writes, and nobody averages.

fails: finish/file, finish/loss
shows: The file has rank 0's own loss
shows: This is the rank's own loss
points: 11
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss
