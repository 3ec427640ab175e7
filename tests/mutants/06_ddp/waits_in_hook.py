"""The hook lands each bucket at once: backward waits for every message.

fails: hooks/overlap
shows: Backward did not end until rank 3 had begun its own
points: 18
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    if not ddp.sync:
        return
    ddp.ready.add(parameter)
    while len(ddp.flying) < len(ddp.buckets) and ddp.ready.issuperset(ddp.buckets[len(ddp.flying)]):
        bucket = ddp.buckets[len(ddp.flying)]
        land(bucket, launch(bucket, ddp.group), ddp.group)
        ddp.flying.append("landed")


def finish(ddp):
    if not ddp.sync:
        return
    for bucket in ddp.buckets[len(ddp.flying):]:
        land(bucket, launch(bucket, ddp.group), ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
