"""No copy where nothing is to be padded; the gradient before stays until the next one comes; a tuple of shards."""
# %% grade_id="shards"
# %%px --setup
def shard(tensor, rank, ranks):
    f = tensor.detach().reshape(-1)
    k = (len(f) - 1) // ranks + 1
    out = f.new_zeros(k)
    part = f[k * rank:k * rank + k]
    out[:len(part)].copy_(part)
    return out

def unshard(own, shape, group=None):
    n = dist.get_world_size(group)
    if n == 1:
        return own[:math.prod(shape)].reshape(shape).clone()
    buf = own.new_empty((n, len(own)))
    dist.all_gather_single(buf.view(-1), own, group=group)
    return buf.view(-1)[:math.prod(shape)].reshape(tuple(shape))

def reduce_shard(tensor, group=None):
    n = dist.get_world_size(group)
    f = tensor.detach().reshape(-1)
    if len(f) % n:
        f = torch.cat([f, f.new_zeros(n - len(f) % n)])
    own = f.new_empty(len(f) // n)
    dist.reduce_scatter_single(own, f, op=dist.ReduceOp.SUM, group=group)
    return own.div_(n)
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    out = [0] * len(parameters)
    last = []
    handles = []
    for i in range(len(parameters)):
        def hook(p, i=i):
            last[:] = [p.grad]
            p.grad = None
            out[i] = reduce_shard(last[0], group)
        handles.append(parameters[i].register_post_accumulate_grad_hook(hook))
    loss.backward()
    last.clear()
    for h in handles: h.remove()
    return tuple(out)
