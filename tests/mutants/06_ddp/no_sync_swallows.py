"""The exception that was raised in the block is swallowed.

fails: no-sync/silent
shows: no_sync has swallowed it
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
        pass
    finally:
        ddp.sync = before
