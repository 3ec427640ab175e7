"""Rank 0's loss is given to all, instead of the mean.

fails: finish/file, finish/loss
shows: it was broadcast, not averaged
points: 11
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    loss = hvd.broadcast_object(loss, root_rank=0)
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss
