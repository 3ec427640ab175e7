"""Data parallelism with gradients that are accumulated in main_grad and averaged in one bucket."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn

from . import process_group_manager as pgm


class DataParallelBucket(nn.Module):
    def __init__(self, module, grad_type=torch.float32):
        super().__init__()
        self.module = module
        self.require_backward_grad_sync = True
        self.params = [param for param in module.parameters() if param.requires_grad]
        self.bucket = torch.zeros(sum(param.numel() for param in self.params), dtype=grad_type, device="cuda")
        views = self.bucket.split([param.numel() for param in self.params])
        self.grad_accs, self._ready, self._callback_set = [], set(), False
        for param, view in zip(self.params, views):
            param.main_grad = view.view_as(param)
            grad_acc = param.expand_as(param).grad_fn.next_functions[0][0]
            grad_acc.register_hook(self._make_param_hook(param))
            self.grad_accs.append(grad_acc)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def backward(self, *inputs):
        return self.module.backward(*inputs)

    def _make_param_hook(self, param):
        def param_hook(*unused):
            param.main_grad.add_(param.grad.data)
            param.grad = None
            if self.require_backward_grad_sync and not self._callback_set:
                torch.autograd.Variable._execution_engine.queue_callback(self._post_backward)
                self._callback_set = True
        return param_hook

    @contextlib.contextmanager
    def no_sync(self):
        self.require_backward_grad_sync = False
        yield
        self.require_backward_grad_sync = True

    def _post_backward(self):
        self.bucket /= pgm.process_group_manager.dp_world_size
        work = dist.all_reduce(self.bucket, group=pgm.process_group_manager.dp_group, async_op=True)
        work.wait()
        self._callback_set = False
        for param in self.params:
            param.grad = param.main_grad.to(param.dtype)

    def reset(self):
        self.bucket.zero_()
