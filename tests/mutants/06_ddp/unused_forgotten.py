"""finish lands what the hooks have launched, and forgets the buckets that never became complete.

fails: hooks/unused
shows: HANG
shows: finish must send what is left
points: 18
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    if not ddp.sync:
        return
    ddp.ready.add(parameter)
    while len(ddp.flying) < len(ddp.buckets) and ddp.ready.issuperset(ddp.buckets[len(ddp.flying)]):
        ddp.flying.append(launch(ddp.buckets[len(ddp.flying)], ddp.group))


def finish(ddp):
    if not ddp.sync:
        return
    for bucket, launched in zip(ddp.buckets, ddp.flying):
        land(bucket, launched, ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
