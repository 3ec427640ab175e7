"""A bucket counts as complete when none of its gradients is None, also when they are from an earlier pass.

fails: hooks/overlap
shows: a gradient that is not None may come from an earlier pass
points: 18
runs: hooks
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    if not ddp.sync:
        return
    while len(ddp.flying) < len(ddp.buckets) and all(p.grad is not None for p in ddp.buckets[len(ddp.flying)]):
        ddp.flying.append(launch(ddp.buckets[len(ddp.flying)], ddp.group))


def finish(ddp):
    if not ddp.sync:
        return
    for bucket in ddp.buckets[len(ddp.flying):]:
        ddp.flying.append(launch(bucket, ddp.group))
    for bucket, launched in zip(ddp.buckets, ddp.flying):
        land(bucket, launched, ddp.group)
    ddp.flying.clear()
