"""Nothing leaves from the hooks: finish sends all buckets when backward has ended.

fails: hooks/overlap
shows: All buckets were sent after backward had ended
points: 18
"""
# %% grade_id="hooks"
# %%px --setup
def gradient_ready(ddp, parameter):
    pass


def finish(ddp):
    if not ddp.sync:
        return
    for bucket in ddp.buckets[len(ddp.flying):]:
        ddp.flying.append(launch(bucket, ddp.group))
    for bucket, launched in zip(ddp.buckets, ddp.flying):
        land(bucket, launched, ddp.group)
    ddp.ready.clear()
    ddp.flying.clear()
