"""Train a translator on several GPUs: torchrun --nproc_per_node=2 main.py --src de --tgt en"""

import logging
import os
from argparse import ArgumentParser
from time import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau

from src.data import create_mask, get_data
from src.model import Translator

LOCAL_RANK = int(os.environ.get("LOCAL_RANK", 0))
DEVICE = torch.device("cuda", LOCAL_RANK) if torch.cuda.is_available() else torch.device("cpu")


def forward(model, src, tgt, pad):
    tgt_input = tgt[:-1, :]
    src_mask, tgt_mask, src_padding_mask, tgt_padding_mask = create_mask(src, tgt_input, pad, DEVICE)
    logits = model(src, tgt_input, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, src_padding_mask)
    return logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1)


def train(model, train_dl, loss_fn, optim, pad, opts):
    total, tokens_seen = 0.0, 0
    model.train()
    for src, tgt in train_dl:
        src, tgt = src.to(DEVICE, non_blocking=True), tgt.to(DEVICE, non_blocking=True)
        optim.zero_grad()
        logits, tgt_out = forward(model, src, tgt, pad)
        loss = loss_fn(logits, tgt_out)
        tokens = (tgt_out != pad).sum()
        dist.all_reduce(tokens)
        (loss * dist.get_world_size() / tokens).backward()  # DDP takes the mean over the ranks
        torch.nn.utils.clip_grad_norm_(model.parameters(), opts.clip)
        optim.step()
        total += loss.item()
        tokens_seen += (tgt_out != pad).sum().item()
    return total / tokens_seen


@torch.no_grad()
def validate(model, valid_dl, loss_fn, pad):
    totals = torch.zeros(2, dtype=torch.float64, device=DEVICE)
    model.eval()
    for src, tgt in valid_dl:
        src, tgt = src.to(DEVICE), tgt.to(DEVICE)
        logits, tgt_out = forward(model, src, tgt, pad)
        totals += torch.stack([loss_fn(logits, tgt_out).double(), (tgt_out != pad).sum()])
    dist.all_reduce(totals)
    return (totals[0] / totals[1]).item()


def main(opts):
    dist.init_process_group("nccl")
    torch.cuda.set_device(DEVICE)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(opts.seed + rank)
    logging.basicConfig(level=logging.INFO if rank == 0 else logging.WARNING)
    if rank == 0:
        os.makedirs(opts.logging_dir, exist_ok=True)
    train_dl, valid_dl, src_vocab_size, tgt_vocab_size, pad = get_data(opts, rank, world_size)
    model = Translator(opts.layers, opts.embed_size, opts.attn_heads, src_vocab_size, tgt_vocab_size, opts.dropout)
    model = model.to(DEVICE)
    raw_model = model
    model = DistributedDataParallel(model, device_ids=[LOCAL_RANK])
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=pad, reduction="sum")
    optim = torch.optim.Adam(model.parameters(), lr=opts.lr, betas=(0.9, 0.98), eps=1e-9)
    scheduler = ReduceLROnPlateau(optim, factor=0.5, patience=0, threshold=0.02)
    best_val_loss, without_gain = 1e6, 0
    for epoch in range(1, opts.epochs + 1):
        start_time = time()
        train_dl.batch_sampler.set_epoch(epoch)
        train_loss = train(model, train_dl, loss_fn, optim, pad, opts)
        val_loss = validate(raw_model, valid_dl, loss_fn, pad)
        scheduler.step(val_loss)
        without_gain = 0 if val_loss < best_val_loss else without_gain + 1
        if val_loss < best_val_loss and rank == 0:
            logging.info("New best model, saving...")
            torch.save(raw_model.state_dict(), os.path.join(opts.logging_dir, "best.pt"))
        best_val_loss = min(best_val_loss, val_loss)
        logging.info(f"Epoch {epoch}: train {train_loss:.3f}, validation {val_loss:.3f}, {time() - start_time:.1f} s")
        if without_gain > opts.patience:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = ArgumentParser(prog="Machine Translator training")
    parser.add_argument("--src", default="de")
    parser.add_argument("--tgt", default="en")
    parser.add_argument("-e", "--epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--attn_heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--embed_size", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--patience", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logging_dir", default="./logs/")
    main(parser.parse_args())
