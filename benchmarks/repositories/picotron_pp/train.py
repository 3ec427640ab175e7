"""Training of a small Llama in a pipeline: torchrun --nproc_per_node 4 train.py --config config.json"""

import argparse
import datetime
import json
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch.optim import AdamW

import picotron.process_group_manager as pgm
from picotron.data import MicroBatchDataLoader
from picotron.data_parallel import DataParallelNaive
from picotron.model import Llama
from picotron.pipeline_parallel import PipelineParallel, train_step_pipeline_1f1b
from picotron.process_group_manager import setup_process_group_manager


def set_all_seed(seed):
    for module in (random, np.random):
        module.seed(seed)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def average_loss_across_dp_ranks(loss, device):
    """The mean over the last stages; 0 on all others."""
    reduced_loss = torch.tensor([loss if loss is not None else 0.0], dtype=torch.float32, device=device)
    if pgm.process_group_manager.pp_is_last_stage:
        dist.all_reduce(reduced_loss, op=dist.ReduceOp.SUM, group=pgm.process_group_manager.dp_group)
        reduced_loss /= pgm.process_group_manager.dp_world_size
    return reduced_loss.item()


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
    dist.init_process_group(rank=global_rank, world_size=world_size, backend="nccl", init_method="env://",
                            timeout=datetime.timedelta(minutes=3))
    setup_process_group_manager(pp_size=config["distributed"]["pp_size"], dp_size=config["distributed"]["dp_size"])
    is_print_rank = pgm.process_group_manager.dp_rank == 0 and pgm.process_group_manager.pp_is_last_stage
    set_all_seed(training["seed"])

    data_loader = MicroBatchDataLoader(
        micro_batch_size=training["micro_batch_size"], seq_length=training["seq_length"],
        grad_acc_steps=training["gradient_accumulation_steps"], vocab_size=config["model"]["vocab_size"],
        num_samples=training["num_samples"])
    dist.barrier()
    model = Llama(config["model"])
    model = PipelineParallel(model, config["model"]["num_hidden_layers"])
    model.to(dtype).to(device)
    stage = model
    if pgm.process_group_manager.dp_world_size > 1:
        model = DataParallelNaive(model)
    model.train()
    tensor_shapes = (training["micro_batch_size"], training["seq_length"], config["model"]["hidden_size"])
    optimizer = AdamW(model.parameters(), lr=training["learning_rate"])
    dist.barrier()

    tokens_per_step, trained_tokens = data_loader.global_batch_size * training["seq_length"], 0
    for step in range(1, training["total_train_steps"] + 1):
        optimizer.zero_grad()
        loss = train_step_pipeline_1f1b(model, data_loader, tensor_shapes, device, dtype)
        stage.allreduce_tied_embedding()
        loss = average_loss_across_dp_ranks(loss, device)
        optimizer.step()
        trained_tokens += tokens_per_step
        if is_print_rank:
            print(f"[rank {global_rank}] Step: {step} | Loss: {loss:6.4f} | Tokens: {trained_tokens}", flush=True)
    dist.destroy_process_group()
