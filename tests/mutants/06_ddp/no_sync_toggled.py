"""no_sync toggles ddp.sync, so a nested block sends.

fails: no-sync/silent
shows: do not toggle it
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    before, ddp.sync = ddp.sync, not ddp.sync
    try:
        yield
    finally:
        ddp.sync = before
