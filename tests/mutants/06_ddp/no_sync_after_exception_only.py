"""ddp.sync is set back after an Exception, but not after a KeyboardInterrupt.

fails: no-sync/silent
shows: which also runs after a KeyboardInterrupt
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    before, ddp.sync = ddp.sync, False
    try:
        yield
    except Exception:
        ddp.sync = before
        raise
    ddp.sync = before
