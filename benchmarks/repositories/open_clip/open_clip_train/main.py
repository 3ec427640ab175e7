"""Train CLIP on all GPUs: torchrun --nproc_per_node 2 -m open_clip_train.main --local-loss --gather-with-grad"""

import argparse
import logging
import os
import random
import sys

import numpy as np
import torch

from open_clip import CLIP, ClipLoss

from .data import get_data
from .distributed import init_distributed_device, is_master
from .scheduler import cosine_lr
from .train import evaluate, train_one_epoch, unwrap_model


def parse_args(args):
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-shards", type=int, default=8)
    parser.add_argument("--train-num-samples", type=int, default=80)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=8, help="per GPU")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--wd", type=float, default=0.2)
    parser.add_argument("--warmup", type=int, default=4)
    parser.add_argument("--precision", choices=["amp", "amp_bf16", "fp32"], default="amp_bf16")
    parser.add_argument("--grad-clip-norm", type=float, default=None)
    parser.add_argument("--local-loss", action="store_true")
    parser.add_argument("--gather-with-grad", action="store_true")
    parser.add_argument("--ddp-static-graph", action="store_true")
    parser.add_argument("--log-every-n-steps", type=int, default=5)
    parser.add_argument("--logs", default="./logs/")
    parser.add_argument("--dist-url", default="env://")
    parser.add_argument("--dist-backend", default="nccl")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(args)


def random_seed(seed=42, rank=0):
    torch.manual_seed(seed + rank)
    np.random.seed(seed + rank)
    random.seed(seed + rank)


def create_loss(args):
    return ClipLoss(local_loss=args.local_loss, gather_with_grad=args.gather_with_grad, rank=args.rank,
                    world_size=args.world_size)


def main(args):
    args = parse_args(args)
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    device = init_distributed_device(args)
    logging.basicConfig(level=logging.INFO if is_master(args) else logging.ERROR)

    random_seed(args.seed, 0)
    model = CLIP()
    random_seed(args.seed, args.rank)
    model.to(device=device)
    if args.distributed:
        ddp_args = {"static_graph": True} if args.ddp_static_graph else {}
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device], **ddp_args)

    def exclude(n, p):
        return p.ndim < 2 or "bn" in n or "ln" in n or "bias" in n or "logit_scale" in n

    named_parameters = list(model.named_parameters())
    gain_or_bias_params = [p for n, p in named_parameters if exclude(n, p) and p.requires_grad]
    rest_params = [p for n, p in named_parameters if not exclude(n, p) and p.requires_grad]
    optimizer = torch.optim.AdamW([{"params": gain_or_bias_params, "weight_decay": 0.0},
                                   {"params": rest_params, "weight_decay": args.wd}],
                                  lr=args.lr, betas=(0.9, 0.98), eps=1e-6)
    scaler = torch.amp.GradScaler("cuda") if args.precision == "amp" else None

    data = get_data(args)
    total_steps = data["train"].dataloader.num_batches * args.epochs
    scheduler = cosine_lr(optimizer, args.lr, args.warmup, total_steps)
    loss = create_loss(args)
    for epoch in range(args.epochs):
        if is_master(args):
            logging.info(f"Start epoch {epoch}")
        train_one_epoch(model, data, loss, epoch, optimizer, scaler, scheduler, args)
        evaluate(model, data, epoch + 1, args)
        if is_master(args):
            os.makedirs(args.logs, exist_ok=True)
            torch.save({"epoch": epoch + 1, "state_dict": unwrap_model(model).state_dict(),
                        "optimizer": optimizer.state_dict()}, os.path.join(args.logs, f"epoch_{epoch + 1}.pt"))


if __name__ == "__main__":
    main(sys.argv[1:])
