"""One epoch of training, and evaluation on the master."""

import logging
import math
import time
from contextlib import suppress

import torch
import torch.nn.functional as F

from .distributed import is_master


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        self.sum, self.count = self.sum + val * n, self.count + n

    @property
    def avg(self):
        return self.sum / self.count


def get_autocast(precision):
    if precision == "amp":
        return lambda: torch.amp.autocast("cuda")
    return (lambda: torch.amp.autocast("cuda", dtype=torch.bfloat16)) if precision == "amp_bf16" else suppress


def unwrap_model(model):
    return model.module if hasattr(model, "module") else model


def backward(total_loss, scaler):
    if scaler is not None:
        scaler.scale(total_loss).backward()
    else:
        total_loss.backward()


def train_one_epoch(model, data, loss, epoch, optimizer, scaler, scheduler, args):
    device = torch.device(args.device)
    autocast = get_autocast(args.precision)
    model.train()
    data["train"].set_epoch(epoch)
    dataloader = data["train"].dataloader
    num_batches_per_epoch = dataloader.num_batches
    losses_m, batch_time_m, end = AverageMeter(), AverageMeter(), time.time()
    for i, batch in enumerate(dataloader):
        step = num_batches_per_epoch * epoch + i
        scheduler(step)
        images, texts = batch
        images = images.to(device=device, non_blocking=True)
        texts = texts.to(device=device, non_blocking=True)
        optimizer.zero_grad()

        with autocast():
            model_out = model(images, texts)
            losses = loss(**model_out, output_dict=True)
            total_loss = sum(losses.values())
            losses["loss"] = total_loss
        backward(total_loss, scaler)

        if scaler is not None:
            if args.grad_clip_norm is not None:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip_norm, norm_type=2.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            if args.grad_clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip_norm, norm_type=2.0)
            optimizer.step()
        with torch.no_grad():
            unwrap_model(model).logit_scale.clamp_(0, math.log(100))

        batch_time_m.update(time.time() - end)
        end = time.time()
        if is_master(args) and (i % args.log_every_n_steps == 0 or i + 1 == num_batches_per_epoch):
            losses_m.update(losses["loss"].item(), len(images))
            logging.info(f"Train Epoch: {epoch} [{i * len(images) * args.world_size}/{dataloader.num_samples}] "
                         f"Batch (t): {batch_time_m.avg:.3f}, LR: {optimizer.param_groups[0]['lr']:5f} "
                         f"Logit Scale: {unwrap_model(model).logit_scale.exp():.3f} Loss: {losses_m.avg:.4f}")


def evaluate(model, data, epoch, args):
    if not is_master(args):
        return {}
    device = torch.device(args.device)
    model = unwrap_model(model)
    model.eval()
    cumulative_loss, num_samples = 0.0, 0
    with torch.inference_mode():
        for images, texts in data["val"].dataloader:
            images, texts = images.to(device), texts.to(device)
            model_out = model(images, texts)
            logits = model_out["logit_scale"] * model_out["image_features"] @ model_out["text_features"].t()
            labels = torch.arange(len(images), device=device)
            cumulative_loss += (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2 * len(images)
            num_samples += len(images)
    metrics = {"clip_val_loss": (cumulative_loss / num_samples).item(), "epoch": epoch}
    logging.info(f"Eval Epoch: {epoch} {metrics}")
    return metrics
