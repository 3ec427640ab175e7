"""After an exception ddp.sync is True, whatever it was before.

fails: no-sync/silent
shows: which the outer one has caught
points: 18
"""
# %% grade_id="no-sync"
# %%px --setup
@contextmanager
def no_sync(ddp):
    before, ddp.sync = ddp.sync, False
    try:
        yield
    except BaseException:
        ddp.sync = True
        raise
    ddp.sync = before
