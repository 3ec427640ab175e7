"""What ddp.sync was is kept in one attribute, which an inner block overwrites.

fails: no-sync/silent, no-sync/sum
shows: set ddp.sync back
points: 17
"""
# %% grade_id="no-sync"
# %%px --setup
_before = []
@contextmanager
def no_sync(ddp):
    ddp.before = ddp.sync
    ddp.sync = False
    try:
        yield
    finally:
        ddp.sync = ddp.before
