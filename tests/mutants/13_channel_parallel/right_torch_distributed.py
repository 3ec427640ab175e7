"""The sums call torch.distributed on the communicator's process group; the join keeps the widths of what arrives."""
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
        parts = functions.allgather(c, x)
        widths = [part.shape[1] for part in parts]
        ctx.widths, ctx.rank = widths, c.rank
        return torch.cat(parts, dim=1)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.split(ctx.widths, dim=1)[ctx.rank], None


copy_to_parts, sum_of_parts, join_parts = Copy.apply, Sum.apply, Join.apply
