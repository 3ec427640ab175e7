"""Another exception than the one that was raised comes out of the block.

fails: no-sync/silent
shows: is not the one that was raised in it
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    before, ddp.sync = ddp.sync, False
    try:
        yield
    except Exception as error:
        raise RuntimeError("in no_sync") from error
    finally:
        ddp.sync = before
