"""Training of a small Llama on a grid of ranks.

CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc_per_node 4 train.py --config config.json"""

import argparse
import datetime
import inspect
import json
import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.optim import AdamW

import picotron.process_group_manager as pgm
from picotron.data import MicroBatchDataLoader
from picotron.data_parallel import DataParallelBucket
from picotron.model import Llama
from picotron.process_group_manager import setup_process_group_manager
from picotron.tensor_parallel import apply_tensor_parallel


def set_all_seed(seed):
    for module in (random, np.random):
        module.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def train_step(model, data_loader, device):
    acc_loss = 0.0
    requires_grad_sync = pgm.process_group_manager.dp_world_size > 1
    for i in range(data_loader.grad_acc_steps):
        batch = next(data_loader)
        input_ids, target_ids = batch["input_ids"].to(device), batch["target_ids"].to(device)
        if requires_grad_sync:
            model.require_backward_grad_sync = (i == data_loader.grad_acc_steps - 1)
        outputs = model(input_ids=input_ids)
        batch_size, seq_len = input_ids.shape
        loss = F.cross_entropy(outputs.view(seq_len * batch_size, -1), target_ids.reshape(-1), reduction="mean")
        loss = loss / data_loader.grad_acc_steps
        loss.backward()
        acc_loss += loss.item()
    return acc_loss


def average_loss_across_dp_ranks(loss, device):
    reduced_loss = torch.tensor([loss], dtype=torch.float32, device=device)
    dist.all_reduce(reduced_loss, op=dist.ReduceOp.AVG, group=pgm.process_group_manager.dp_group)
    return reduced_loss.item()


def save_checkpoint(model, optimizer, step, out_dir):
    """One file for each part of the model, written by the first rank of its data-parallel group."""
    if pgm.process_group_manager.dp_rank == 0:
        os.makedirs(out_dir, exist_ok=True)
        path = os.path.join(out_dir, f"weights_tp_{pgm.process_group_manager.tp_rank}_{step}.pth")
        torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=str, default="config.json", help="Path to config file")
    with open(parser.parse_args().config) as f:
        config = json.load(f)
    training = config["training"]
    local_rank, global_rank = int(os.environ["LOCAL_RANK"]), int(os.environ["RANK"])
    world_size = int(os.environ["WORLD_SIZE"])
    dtype = torch.float32
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    dist.init_process_group(rank=global_rank, world_size=world_size, backend=config["distributed"]["backend"],
                            init_method="env://", timeout=datetime.timedelta(minutes=3))
    setup_process_group_manager(tp_size=config["distributed"]["tp_size"], dp_size=config["distributed"]["dp_size"])
    is_print_rank = pgm.process_group_manager.tp_rank == 0 and pgm.process_group_manager.dp_rank == 0
    set_all_seed(training["seed"])

    data_loader = MicroBatchDataLoader(
        micro_batch_size=training["micro_batch_size"], seq_length=training["seq_length"],
        grad_acc_steps=training["gradient_accumulation_steps"], vocab_size=config["model"]["vocab_size"],
        num_samples=training["num_samples"])
    dist.barrier()
    tokens_per_step = data_loader.global_batch_size * training["seq_length"]

    objects = [config["model"]] if global_rank == 0 else [None]
    dist.broadcast_object_list(objects, src=0, device=device)
    model = Llama(config=objects[0])
    if pgm.process_group_manager.tp_world_size > 1:
        model = apply_tensor_parallel(model)
    model.to(dtype).to(device)
    if pgm.process_group_manager.dp_world_size > 1:
        model = DataParallelBucket(model)
    model.train()

    fused = "fused" in inspect.signature(AdamW).parameters and device == "cuda"
    optimizer = AdamW(model.parameters(), lr=training["learning_rate"], **(dict(fused=True) if fused else {}))
    dist.barrier()
    trained_tokens = 0
    for step in range(1, training["total_train_steps"] + 1):
        step_start_time = time.time()
        optimizer.zero_grad()
        loss = train_step(model, data_loader, device)
        loss = average_loss_across_dp_ranks(loss, device)
        optimizer.step()
        trained_tokens += tokens_per_step
        if hasattr(model, "reset"):
            model.reset()
        torch.cuda.synchronize()
        tokens_per_second = tokens_per_step / (time.time() - step_start_time)
        if is_print_rank:
            print(f"[rank {global_rank}] Step: {step} | Loss: {loss:6.4f} | Tokens/s: {tokens_per_second:.0f} | "
                  f"Tokens: {trained_tokens} | Memory usage: {torch.cuda.memory_reserved() / 1e9:6.2f}GB", flush=True)
        if step % config["checkpoint"]["save_frequency"] == 0:
            save_checkpoint(model, optimizer, step, config["checkpoint"]["save_dir"])
    dist.destroy_process_group()
