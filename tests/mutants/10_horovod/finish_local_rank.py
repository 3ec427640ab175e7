"""local_rank() is 0 once on every node.

fails: finish/file
shows: is 0 once on every node
points: 12
"""
# %% grade_id="finish"
# %%px
def finish(model, loss, path):
    loss = hvd.allreduce(torch.tensor(loss)).item()
    if hvd.local_rank() == 0:
        torch.save({"model": model.state_dict(), "loss": loss}, path)
    return loss
