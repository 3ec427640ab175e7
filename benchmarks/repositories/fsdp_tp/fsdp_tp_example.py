"""2-D parallelism: tensor and sequence parallelism inside a host, FSDP2 across hosts.

torchrun --nnodes 1 --nproc-per-node 4 fsdp_tp_example.py"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               parallelize_module)

from llama2_model import ModelArgs, Transformer
from log_utils import get_logger, rank_log, verify_min_gpu_count

_min_gpu_count = 4
if not verify_min_gpu_count(min_gpus=_min_gpu_count):
    print(f"Unable to locate sufficient {_min_gpu_count} gpus to run this example. Exiting.")
    sys.exit()

tp_size = 2
logger = get_logger()
_rank, _world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print(f"Starting PyTorch 2D (FSDP + TP) example on rank {_rank}.")
assert _world_size % tp_size == 0, f"World size {_world_size} needs to be divisible by TP size {tp_size}"
dp_size = _world_size // tp_size

device_mesh = init_device_mesh("cuda", (dp_size, tp_size), mesh_dim_names=("dp", "tp"))
rank_log(_rank, logger, f"Device Mesh created: {device_mesh=}")
tp_mesh, dp_mesh = device_mesh["tp"], device_mesh["dp"]
dp_rank = dp_mesh.get_local_rank()


def parallelize(model):
    """Cuts the embedding and the output by the vocabulary, and all blocks by heads; norms see parts of the sequence."""
    model = parallelize_module(model, tp_mesh, {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    })
    for transformer_block in model.layers:
        attn_layer = transformer_block.attention
        attn_layer.n_heads = attn_layer.n_heads // tp_mesh.size()
        attn_layer.n_kv_heads = attn_layer.n_kv_heads // tp_mesh.size()
        parallelize_module(transformer_block, tp_mesh, {
            "attention_norm": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)),
            "attention.wq": ColwiseParallel(),
            "attention.wk": ColwiseParallel(),
            "attention.wv": ColwiseParallel(),
            "attention.wo": RowwiseParallel(output_layouts=Shard(1)),
            "ffn_norm": SequenceParallel(),
            "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "feed_forward.w1": ColwiseParallel(),
            "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
            "feed_forward.w3": ColwiseParallel(),
        })
    return model


def clip_grad_norm_(parameters, max_norm):
    """Clips to the norm of the whole gradient, over both dimensions of the mesh."""
    total = torch.nn.utils.get_total_norm([p.grad for p in parameters])
    total = total.full_tensor()
    for p in parameters:
        p.grad.mul_(torch.clamp(max_norm / (total + 1e-6), max=1.0).item())
    return total


torch.manual_seed(0)
simple_llama2_config = ModelArgs(dim=32, n_layers=2, n_heads=4, vocab_size=64)
model = Transformer.from_model_args(simple_llama2_config).to("cuda")
model.init_weights()
model = parallelize(model)
lr = 3e-3
for layer in model.layers:
    fully_shard(layer, mesh=dp_mesh)
sharded_model = fully_shard(model, mesh=dp_mesh)
rank_log(_rank, logger, f"Model after parallelization {sharded_model=}\n")

rank_log(_rank, logger, f"Creating AdamW optimizer with learning rate {lr}")
optimizer = torch.optim.AdamW(sharded_model.parameters(), lr=lr, foreach=True)

rank_log(_rank, logger, "\nStarting 2D training...")
num_iterations, batch_size, seq_len = 12, 4, 16
for i in range(num_iterations):
    # seeding with dp_rank, since all ranks of a tensor-parallel group need the same rows
    torch.manual_seed(i * dp_size + dp_rank)
    inp = torch.randint(64, (batch_size, seq_len + 1), device="cuda")
    output = sharded_model(inp[:, :-1])
    loss = F.cross_entropy(output.flatten(0, 1), inp[:, 1:].flatten())
    loss.backward()
    clip_grad_norm_(list(sharded_model.parameters()), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    rank_log(_rank, logger, f"2D iter {i} complete, loss {loss.item():.4f}")

rank_log(_rank, logger, "2D training successfully completed!")
dist.destroy_process_group()
