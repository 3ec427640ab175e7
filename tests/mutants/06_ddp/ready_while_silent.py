"""A parameter is noted in `ready` while ddp.sync is False.

fails: hooks/overlap, no-sync/sum
shows: not even note the parameter in `ready`. Moreover, a gradient
shows: The cause is in exercise 4
points: 17
runs: hooks, no-sync
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    ddp.ready.add(parameter)
    if not ddp.sync:
        return
    while len(ddp.flying) < len(ddp.buckets) and ddp.ready.issuperset(ddp.buckets[len(ddp.flying)]):
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
