"""The open blocks of all models are counted in one global number.

fails: no-sync/silent
shows: the block of one changes the other
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
_depth = 0
@contextmanager
def no_sync(ddp):
    global _depth
    _depth += 1
    ddp.sync = False
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            ddp.sync = True
