"""A stage of a pipeline, and the schedule of its micro-batches: one forward, one backward."""

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from . import process_group_manager as pgm
from .pp_communications import bidirectional_pipeline_communicate, pipeline_communicate


class PipelineParallel(nn.Module):
    def __init__(self, model, num_layers):
        super().__init__()
        manager = pgm.process_group_manager
        self.embedding = model.embedding if manager.pp_is_first_stage else nn.Identity()
        layers = self.distribute_layers(num_layers)
        self.decoder_layers = nn.ModuleDict({str(i): model.decoder_layers[i] for i in layers})
        self.final_norm = model.final_norm if manager.pp_is_last_stage else nn.Identity()
        self.final_proj = model.final_proj if manager.pp_is_last_stage else nn.Identity()

    def distribute_layers(self, num_layers):
        size, rank = pgm.process_group_manager.pp_world_size, pgm.process_group_manager.pp_rank
        layers_per_gpu = [num_layers // size + (1 if i < num_layers % size else 0) for i in range(size)]
        start_layer = sum(layers_per_gpu[:rank])
        return list(range(start_layer, start_layer + layers_per_gpu[rank]))

    def forward(self, input_ids, hidden_states):
        x = self.embedding(hidden_states if hidden_states is not None else input_ids)
        for layer in self.decoder_layers.values():
            x = layer(x)
        return self.final_proj(self.final_norm(x))

    def backward(self, input_tensor, output_tensor, output_tensor_grad):
        if input_tensor is not None:
            input_tensor.retain_grad()
        if output_tensor_grad is None:
            output_tensor_grad = torch.ones_like(output_tensor, memory_format=torch.preserve_format)
        torch.autograd.backward(output_tensor, grad_tensors=output_tensor_grad)
        return input_tensor.grad if input_tensor is not None else None

    def allreduce_tied_embedding(self):
        """Sums the gradients of the embedding, which the first and the last stage share."""
        if pgm.process_group_manager.pp_is_first_stage:
            dist.all_reduce(self.embedding.weight.grad, group=pgm.process_group_manager.embedding_group)
        elif pgm.process_group_manager.pp_is_last_stage:
            dist.all_reduce(self.final_proj.weight.grad, group=pgm.process_group_manager.embedding_group)


def train_step_pipeline_1f1b(model, data_loader, tensor_shapes, device, dtype):
    manager = pgm.process_group_manager
    num_warmup_microbatches = min(manager.pp_world_size - manager.pp_rank - 1, data_loader.grad_acc_steps)
    num_microbatches_remaining = data_loader.grad_acc_steps - num_warmup_microbatches
    logging_loss, input_tensors, output_tensors = 0.0, [], []
    comm = {"device": device, "dtype": dtype}

    def _forward_step(input_tensor):
        batch = next(data_loader)
        output_tensor = model.forward(input_ids=batch["input_ids"].to(device), hidden_states=input_tensor)
        if manager.pp_is_last_stage:
            nonlocal logging_loss
            target_ids = batch["target_ids"].to(device)
            output_tensor = F.cross_entropy(output_tensor.transpose(1, 2), target_ids, reduction="mean")
            output_tensor = output_tensor / data_loader.grad_acc_steps
            logging_loss += output_tensor.item()
        return output_tensor

    for _ in range(num_warmup_microbatches):
        input_tensor = pipeline_communicate("recv_forward", shapes=tensor_shapes, **comm)
        output_tensor = _forward_step(input_tensor)
        pipeline_communicate("send_forward", tensor=output_tensor, **comm)
        input_tensors.append(input_tensor)
        output_tensors.append(output_tensor)
    if num_microbatches_remaining > 0:
        input_tensor = pipeline_communicate("recv_forward", shapes=tensor_shapes, **comm)
    model.require_backward_grad_sync = False

    for ith_microbatch in range(num_microbatches_remaining):
        is_last_iteration = ith_microbatch == num_microbatches_remaining - 1
        output_tensor = _forward_step(input_tensor)
        output_tensor_grad = bidirectional_pipeline_communicate(
            "send_fwd_recv_bwd", output_tensor, tensor_shapes, **comm)
        input_tensors.append(input_tensor)
        output_tensors.append(output_tensor)
        input_tensor, output_tensor = input_tensors.pop(0), output_tensors.pop(0)
        if num_warmup_microbatches == 0 and is_last_iteration:
            model.require_backward_grad_sync = True
        input_tensor_grad = model.backward(input_tensor, output_tensor, output_tensor_grad)
        if is_last_iteration:
            input_tensor = None
            pipeline_communicate("send_backward", tensor=input_tensor_grad, **comm)
        else:
            input_tensor = bidirectional_pipeline_communicate(
                "send_bwd_recv_fwd", input_tensor_grad, tensor_shapes, **comm)

    for ith_warmup_microbatch in range(num_warmup_microbatches):
        model.require_backward_grad_sync = ith_warmup_microbatch == num_warmup_microbatches - 1
        input_tensor, output_tensor = input_tensors.pop(0), output_tensors.pop(0)
        output_tensor_grad = pipeline_communicate("recv_backward", shapes=tensor_shapes, **comm)
        input_tensor_grad = model.backward(input_tensor, output_tensor, output_tensor_grad)
        pipeline_communicate("send_backward", tensor=input_tensor_grad, **comm)
    return logging_loss
