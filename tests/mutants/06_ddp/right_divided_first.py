"""Divides before the all-reduce, copies into the gradients in place, and counts in place of keeping sets."""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    for p in bucket:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    flat = torch.nn.utils.parameters_to_vector([p.grad for p in bucket]) / dist.get_world_size(group)
    return dist.all_reduce(flat, group=group, async_op=True), flat


def land(bucket, launched, group=None):
    work, flat = launched
    work.wait()
    start = 0
    for p in bucket:
        p.grad.copy_(flat[start:start + p.numel()].reshape(p.shape))
        start += p.numel()

# %% grade_id="hooks"
# %%px --setup
def _next_is_complete(ddp):
    return len(ddp.flying) < len(ddp.buckets) and all(id(p) in ddp.ready for p in ddp.buckets[len(ddp.flying)])


def gradient_ready(ddp, parameter):
    if ddp.sync:
        ddp.ready.add(id(parameter))
        while _next_is_complete(ddp):
            ddp.flying.append(launch(ddp.buckets[len(ddp.flying)], ddp.group))


def finish(ddp):
    if ddp.sync:
        ddp.flying += [launch(bucket, ddp.group) for bucket in ddp.buckets[len(ddp.flying):]]
        while ddp.flying:
            last = len(ddp.flying) - 1
            land(ddp.buckets[last], ddp.flying.pop(), ddp.group)
        ddp.ready = set()

# %% grade_id="no-sync"
# %%px --setup
class no_sync:
    def __init__(self, ddp):
        self.ddp = ddp

    def __enter__(self):
        self.before = self.ddp.sync
        self.ddp.sync = False

    def __exit__(self, *exception):
        self.ddp.sync = self.before
