"""A bucket leaves as soon as it is complete, before the ones in front of it: ranks that skip a branch send in another order.

fails: hooks/overlap, hooks/unused
shows: Bucket 1 must never leave before bucket 0
points: 17
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    if not ddp.sync:
        return
    ddp.ready.add(parameter)
    for number, bucket in enumerate(ddp.buckets):
        if number not in dict(ddp.flying) and ddp.ready.issuperset(bucket):
            ddp.flying.append((number, launch(bucket, ddp.group)))


def finish(ddp):
    if not ddp.sync:
        return
    for number, bucket in enumerate(ddp.buckets):
        if number not in dict(ddp.flying):
            ddp.flying.append((number, launch(bucket, ddp.group)))
    for number, launched in ddp.flying:
        land(ddp.buckets[number], launched, ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
