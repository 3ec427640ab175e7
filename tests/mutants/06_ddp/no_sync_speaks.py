"""no_sync does nothing: every micro-batch is sent.

fails: no-sync/silent
shows: Gradients were sent inside no_sync
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    yield
