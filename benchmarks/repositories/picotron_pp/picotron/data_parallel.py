"""Data parallelism without buckets: a hook averages each gradient, but only in the last backward call of a step."""

import torch.distributed as dist
from torch import nn

from . import process_group_manager as pgm


class DataParallelNaive(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.require_backward_grad_sync = True
        for param in module.parameters():
            param.register_post_accumulate_grad_hook(self._allreduce_grads)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def backward(self, input_tensor, output_tensor, output_tensor_grad):
        return self.module.backward(input_tensor, output_tensor, output_tensor_grad)

    def _allreduce_grads(self, param):
        if self.require_backward_grad_sync:
            dist.all_reduce(param.grad, op=dist.ReduceOp.SUM, group=pgm.process_group_manager.dp_group)
            param.grad /= pgm.process_group_manager.dp_world_size
