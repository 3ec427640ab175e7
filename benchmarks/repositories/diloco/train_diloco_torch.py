"""Train a language model with DiLoCo. Each rank takes local steps with AdamW. Then an outer optimiser, SGD with
Nesterov momentum, takes a step along the average of what they have changed:
torchrun --standalone --nproc_per_node=2 train_diloco_torch.py"""

import argparse
import os
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.distributed import destroy_process_group, init_process_group
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, IterableDataset

from model import LlamaForCausalLM


class Stream(IterableDataset):
    """Sequences of tokens without end; `split_by_node` gives each node every n-th one."""

    def __init__(self, split, length, world_size=1, rank=0):
        self.split, self.length, self.world_size, self.rank = split, length, world_size, rank

    def __iter__(self):
        draw = torch.Generator().manual_seed(0 if self.split == "train" else 1)
        for number in range(4000 if self.split == "train" else 32):
            row = torch.randint(64, (self.length,), generator=draw)
            if number % self.world_size == self.rank:
                yield row


def split_by_node(stream, world_size, rank):
    return Stream(stream.split, stream.length, world_size, rank)


def collate(rows):
    ids = torch.stack(rows)
    return {"input_ids": ids, "labels": ids.clone()}


def ddp_setup():
    init_process_group(backend="nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def save_checkpoint(step, model, inner_optimizer, outer_optimizer, scheduler, checkpoint_path):
    os.makedirs(checkpoint_path, exist_ok=True)
    torch.save({"model_state_dict": model.state_dict(), "inner_optimizer_state_dict": inner_optimizer.state_dict(),
                "outer_optimizer_state_dict": outer_optimizer.state_dict(), "step": step,
                "scheduler_state_dict": scheduler.state_dict()}, os.path.join(checkpoint_path, f"model_step_{step}.pt"))


def evaluate_model(eval_dataloader, model, half_precision):
    loss_eval, step_eval = 0, 0
    model.eval()
    for batch_eval in eval_dataloader:
        batch_eval = {key: value.to("cuda") for key, value in batch_eval.items()}
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16) if half_precision else nullcontext():
            loss_eval += model(**batch_eval).loss
        step_eval += 1
    model.train()
    return {"eval_loss": (loss_eval / step_eval).item(), "eval_perplexity": torch.exp(loss_eval / step_eval).item()}


def get_offloaded_param(outer_optimizer):
    params = [param for group in outer_optimizer.param_groups for param in group["params"]]
    return [param.data.detach().clone().to("cpu") for param in params]


def main(args):
    local_rank, world_size = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    gradient_accumulation_steps = args.batch_size // args.per_device_train_batch_size
    torch.manual_seed(1337 + local_rank)
    model = LlamaForCausalLM(length=args.seq_length).to(local_rank)
    inner_optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1, betas=(0.9, 0.95))
    outer_optimizer = torch.optim.SGD(model.parameters(), lr=args.outer_lr, momentum=0.9, nesterov=True)
    scheduler = LambdaLR(inner_optimizer, lambda step: min(1.0, (step + 1) / args.warmup_steps))
    half_precision = args.precision != "32-true"
    scaler = torch.amp.GradScaler("cuda", enabled=args.precision == "fp16-mixed")

    train_dataset = split_by_node(Stream("train", args.seq_length), world_size=world_size, rank=local_rank)
    train_dataloader = DataLoader(train_dataset, collate_fn=collate, batch_size=args.per_device_train_batch_size)
    eval_dataloader = DataLoader(Stream("validation", args.seq_length), collate_fn=collate, batch_size=16)

    for param in model.parameters():
        # this makes sure that all devices have the same initial weights
        dist.broadcast(param.data, src=0)
    params_offloaded = get_offloaded_param(outer_optimizer)
    model.train()
    start_time, loss_batch = time.time(), 0

    for step, batch in enumerate(train_dataloader):
        real_step = (step + 1) // gradient_accumulation_steps
        step_within_grad_acc = (step + 1) % gradient_accumulation_steps
        batch = {key: value.to("cuda") for key, value in batch.items()}
        with torch.autocast("cuda", torch.bfloat16) if half_precision else nullcontext():
            loss = model(**batch).loss / gradient_accumulation_steps
        loss_batch += loss.detach()
        scaler.scale(loss).backward()
        if step_within_grad_acc != 0:
            continue

        scaler.unscale_(optimizer=inner_optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer=inner_optimizer)
        scaler.update()
        scheduler.step()
        inner_optimizer.zero_grad()

        if real_step % args.local_steps == 0:
            main_param = [param for group in inner_optimizer.param_groups for param in group["params"]]
            for param_offloaded, param in zip(params_offloaded, main_param):
                param_offloaded_on_device = param_offloaded.data.to(param.device)
                param.grad = param_offloaded_on_device - param.data
                dist.all_reduce(tensor=param.grad, op=dist.ReduceOp.AVG)
                param.data = param_offloaded_on_device
            outer_optimizer.step()
            outer_optimizer.zero_grad()
            params_offloaded = get_offloaded_param(outer_optimizer)

        if local_rank == 0 and real_step % args.eval_steps == 0:
            print(evaluate_model(eval_dataloader, model, half_precision))
        if local_rank == 0:
            print(f"step: {real_step}, loss: {loss_batch.item():.4f}, lr: {inner_optimizer.param_groups[0]['lr']:.2e}, "
                  f"total_samples: {real_step * args.batch_size * world_size}, {time.time() - start_time:.1f} s")
        loss_batch = 0
        if real_step % args.checkpoint_interval == 0:
            if local_rank == 0:
                save_checkpoint(real_step, model, inner_optimizer, outer_optimizer, scheduler, args.checkpoint_path)
            dist.barrier()
        if real_step == args.total_steps:
            break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8, help="of a rank")
    parser.add_argument("--per-device-train-batch-size", type=int, default=4)
    parser.add_argument("--seq-length", type=int, default=32)
    parser.add_argument("--local-steps", type=int, default=10)
    parser.add_argument("--total-steps", type=int, default=200)
    parser.add_argument("--warmup-steps", type=int, default=5)
    parser.add_argument("--eval-steps", type=int, default=10)
    parser.add_argument("--checkpoint-interval", type=int, default=4)
    parser.add_argument("--checkpoint-path", default="outputs")
    parser.add_argument("--precision", choices=["fp16-mixed", "bf16-mixed", "32-true"], default="bf16-mixed")
    parser.add_argument("--lr", type=float, default=4e-4)
    parser.add_argument("--outer-lr", type=float, default=0.7)
    ddp_setup()
    main(parser.parse_args())
    destroy_process_group()
