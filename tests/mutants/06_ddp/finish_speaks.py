"""finish does not look at ddp.sync.

fails: hooks/overlap
shows: All-reduces were seen while ddp.sync was False
points: 18
runs: hooks
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
    for bucket in ddp.buckets[len(ddp.flying):]:
        ddp.flying.append(launch(bucket, ddp.group))
    for bucket, launched in zip(ddp.buckets, ddp.flying):
        land(bucket, launched, ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
