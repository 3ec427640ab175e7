"""The operators call torch.distributed on the communicator's process group; the join is a broadcast from each rank."""
# %% grade_id="operators"
# %%px --setup
import torch.distributed as dist


def summed(x, c):
    x = x.detach().clone().contiguous()
    dist.all_reduce(x, group=c.process_group)
    return x


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        ctx.c = c
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return summed(gradient, ctx.c), None


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        return summed(x, c)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Join(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, c):
        with_all = torch.zeros(c.size, dtype=torch.int64)
        with_all[c.rank] = x.shape[1]
        dist.all_reduce(with_all, group=c.process_group)
        widths, parts = with_all.tolist(), []
        for rank, width in enumerate(widths):
            parts.append(x.contiguous().clone() if rank == c.rank else x.new_empty(x.shape[0], width, *x.shape[2:]))
            dist.broadcast(parts[-1], group=c.process_group, group_src=rank)
        ctx.widths, ctx.rank = widths, c.rank
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.split(ctx.widths, dim=1)[ctx.rank], None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
