"""After an exception inside no_sync, gradients are never sent again.

fails: no-sync/silent
shows: Set it back in a `finally`
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    before, ddp.sync = ddp.sync, False
    yield
    ddp.sync = before
