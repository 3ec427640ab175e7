"""Linear layers cut by columns and by rows, and an embedding cut by the vocabulary (Megatron-LM, 2019)."""

import math

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

from . import process_group_manager as pgm


class CopyToModelParallelRegion(torch.autograd.Function):
    """The identity; backward sums over the group."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad_output):
        if pgm.process_group_manager.tp_world_size > 1:
            grad_output = grad_output.contiguous()
            dist.all_reduce(grad_output, op=dist.ReduceOp.SUM, group=pgm.process_group_manager.tp_group)
        return grad_output


class ReduceFromModelParallelRegion(torch.autograd.Function):
    """A sum over the group; backward is the identity."""

    @staticmethod
    def forward(ctx, x):
        if pgm.process_group_manager.tp_world_size == 1:
            return x
        dist.all_reduce(x, op=dist.ReduceOp.SUM, group=pgm.process_group_manager.tp_group)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class GatherFromModelParallelRegion(torch.autograd.Function):
    """The parts of all ranks of the group, put together along the last dimension; backward takes the own part."""

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(pgm.process_group_manager.tp_world_size)]
        dist.all_gather(parts, x.contiguous(), group=pgm.process_group_manager.tp_group)
        return torch.cat(parts, dim=-1).contiguous()

    @staticmethod
    def backward(ctx, grad_output):
        size = grad_output.size(-1) // pgm.process_group_manager.tp_world_size
        return torch.split(grad_output, size, dim=-1)[pgm.process_group_manager.tp_rank].contiguous()


def own_part(whole, dim):
    manager = pgm.process_group_manager
    return torch.chunk(whole, manager.tp_world_size, dim)[manager.tp_rank].contiguous()


class ColumnParallelLinear(nn.Module):
    def __init__(self, in_features, out_features, gather_output=False):
        super().__init__()
        self.in_features, self.out_features, self.gather_output = in_features, out_features, gather_output
        self.weight = nn.Parameter(torch.empty(out_features // pgm.process_group_manager.tp_world_size, in_features))
        self.reset_parameters()

    def reset_parameters(self):
        master_weight = torch.empty(self.out_features, self.in_features)
        nn.init.uniform_(master_weight, -math.sqrt(1 / self.in_features), math.sqrt(1 / self.in_features))
        self.weight.data = own_part(master_weight, 0)

    def forward(self, x):
        output = F.linear(CopyToModelParallelRegion.apply(x), self.weight)
        return GatherFromModelParallelRegion.apply(output) if self.gather_output else output


class RowParallelLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features // pgm.process_group_manager.tp_world_size))
        self.reset_parameters()

    def reset_parameters(self):
        master_weight = torch.empty(self.out_features, self.in_features)
        nn.init.uniform_(master_weight, -math.sqrt(1 / self.in_features), math.sqrt(1 / self.in_features))
        self.weight.data = own_part(master_weight, 1)

    def forward(self, x):
        output_parallel = F.linear(x, self.weight)
        return ReduceFromModelParallelRegion.apply(output_parallel)


class VocabParallelEmbedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        per_rank = num_embeddings // pgm.process_group_manager.tp_world_size
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.vocab_start_index = pgm.process_group_manager.tp_rank * per_rank
        self.vocab_end_index = self.vocab_start_index + per_rank
        self.weight = nn.Parameter(torch.empty(per_rank, embedding_dim))
        self.reset_parameters()

    def reset_parameters(self):
        master_weight = torch.empty(self.num_embeddings, self.embedding_dim)
        nn.init.normal_(master_weight, std=0.5)
        self.weight.data = own_part(master_weight, 0)

    def forward(self, x):
        input_mask = (x < self.vocab_start_index) | (x >= self.vocab_end_index)
        masked_input = x.clone() - self.vocab_start_index
        masked_input[input_mask] = 0
        embedded = F.embedding(masked_input, self.weight)
        embedded[input_mask, :] = 0.0
        return ReduceFromModelParallelRegion.apply(embedded)


def apply_tensor_parallel(model):
    """Replaces the layers of the model by their parallel versions."""
    for layer in model.decoder_layers:
        for module, name, style in ((layer.attention, "qkv_proj", "column"), (layer.attention, "out_proj", "row"),
                                    (layer.mlp, "up_proj", "column"), (layer.mlp, "down_proj", "row")):
            linear = getattr(module, name)
            parallel = ColumnParallelLinear if style == "column" else RowParallelLinear
            setattr(module, name, parallel(linear.in_features, linear.out_features))
    model.embedding = VocabParallelEmbedding(model.embedding.num_embeddings, model.embedding.embedding_dim)
    model.final_proj = ColumnParallelLinear(model.final_proj.in_features, model.final_proj.out_features,
                                            gather_output=True)
    return model
