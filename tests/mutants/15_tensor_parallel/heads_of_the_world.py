"""cut_heads takes the rank that runs, not the one that is asked for.

fails: attention/pieces
shows: does not give what a single process computes
points: 27
runs: attention
"""
# %% grade_id="attention"
# %%px --setup
def cut_heads(qkv, out, heads, rank, size):
    """(this rank's columns of qkv, its rows of out), for `rank` of `size` ranks.

    heads: of the whole layer. Raises ValueError if they do not divide by the ranks.
    """
    if heads % size:
        raise ValueError(f"{heads} heads do not divide by {size} ranks")
    rank = dist.get_rank()
    mine = slice(heads // size * rank, heads // size * (rank + 1))
    return (qkv.unflatten(1, (3, heads, -1))[:, :, mine].flatten(1).clone(),
            out.unflatten(0, (heads, -1))[mine].flatten(0, 1).clone())


def attention(x, qkv, out, heads, group=None):
    """The output of all heads, [rows, places, width], on all ranks.

    x: [rows, places, width], the same on all ranks. qkv, out: from `cut_heads`.
    heads: of the whole layer.
    """
    here = heads // dist.get_world_size(group)
    products = (copy_to(x, group) @ qkv).unflatten(-1, (3, here, -1))
    q, k, v = products.permute(2, 0, 3, 1, 4)  # each [rows, heads, places, head_size]
    later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
    each = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return reduce_from(each @ out, group)
