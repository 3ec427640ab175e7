"""The losses are added up.

fails: finish/file, finish/loss
shows: This is the sum over the ranks
points: 11
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    loss = hvd.allreduce(torch.tensor(loss), op=hvd.Sum).item()
    if hvd.rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss
