"""Counts how many gradients are ready, and not which: a bucket leaves before its own are there.

fails: hooks/overlap
shows: A bucket left before all of its own gradients of this backward pass were ready
points: 18
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    if not ddp.sync:
        return
    ddp.ready.add(parameter)
    while len(ddp.flying) < len(ddp.buckets) and len(ddp.ready) >= sum(map(len, ddp.buckets[:len(ddp.flying) + 1])):
        ddp.flying.append(launch(ddp.buckets[len(ddp.flying)], ddp.group))


def finish(ddp):
    if not ddp.sync:
        return
    for bucket in ddp.buckets[len(ddp.flying):]:
        ddp.flying.append(launch(bucket, ddp.group))
    for bucket, launched in zip(ddp.buckets, ddp.flying):
        land(bucket, launched, ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
