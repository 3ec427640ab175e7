"""Sums go through rank 0: gathered there, added up, and broadcast; the join keeps its widths as a list, and backward splits."""
# %% grade_id="operators"
# %%px --setup
def through_rank_0(x, c):
    with torch.no_grad():
        parts = functions.gather(c, x)
        return functions.bcast(c, sum(parts) if c.rank == 0 else None)


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.c = c
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return through_rank_0(gradient, ctx.c), None


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        return through_rank_0(x, c)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        parts = functions.allgather(c, x)
        ctx.rank, ctx.widths = c.rank, [part.shape[1] for part in parts]
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.split(ctx.widths, dim=1)[ctx.rank].contiguous(), None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
