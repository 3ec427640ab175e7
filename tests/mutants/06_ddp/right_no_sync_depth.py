"""The open blocks are counted on the model.
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    ddp.silent = getattr(ddp, "silent", 0) + 1
    ddp.sync = False
    try:
        yield
    finally:
        ddp.silent -= 1
        ddp.sync = ddp.silent == 0
