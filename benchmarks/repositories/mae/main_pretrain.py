"""Pre-train a masked autoencoder."""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
import torch.backends.cudnn as cudnn

import models_mae
import util.misc as misc
from engine_pretrain import train_one_epoch
from util.misc import NativeScalerWithGradNormCount as NativeScaler


def get_args_parser():
    parser = argparse.ArgumentParser("MAE pre-training", add_help=False)
    parser.add_argument("--batch_size", default=4, type=int, help="per GPU and iteration")
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--accum_iter", default=1, type=int)
    parser.add_argument("--model", default="mae_vit_tiny")
    parser.add_argument("--mask_ratio", default=0.75, type=float)
    parser.add_argument("--norm_pix_loss", action="store_true")
    parser.add_argument("--weight_decay", default=0.05, type=float)
    parser.add_argument("--lr", default=None, type=float)
    parser.add_argument("--blr", default=1e-1, type=float, help="base learning rate: lr = blr * total batch size / 256")
    parser.add_argument("--min_lr", default=0.0, type=float)
    parser.add_argument("--warmup_epochs", default=1, type=int)
    parser.add_argument("--output_dir", default="./output_dir")
    parser.add_argument("--log_dir", default="./output_dir")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--resume", default="")
    parser.add_argument("--start_epoch", default=0, type=int)
    parser.add_argument("--num_workers", default=0, type=int)
    parser.add_argument("--no_pin_mem", action="store_false", dest="pin_mem")
    parser.add_argument("--world_size", default=1, type=int)
    parser.add_argument("--dist_url", default="env://")
    return parser


class RandomCrop:
    def __call__(self, image):
        top, left = np.random.randint(0, 5, 2)
        image = image[:, top:top + 16, left:left + 16]
        return image.flip(-1) if np.random.rand() < 0.5 else image.clone()


class Images(torch.utils.data.Dataset):
    """Images that are made here, of a few textures."""

    def __init__(self, length=160, transform=None):
        generator = torch.Generator().manual_seed(3)
        self.images = torch.randn(4, 3, 20, 20, generator=generator).repeat(length // 4, 1, 1, 1)
        self.images += 0.3 * torch.randn(self.images.shape, generator=generator)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.transform(self.images[index]), 0


def add_weight_decay(model, weight_decay):
    decay = [p for p in model.parameters() if p.requires_grad and p.dim() > 1]
    no_decay = [p for p in model.parameters() if p.requires_grad and p.dim() <= 1]
    return [{"params": no_decay, "weight_decay": 0.0}, {"params": decay, "weight_decay": weight_decay}]


def main(args):
    misc.init_distributed_mode(args)
    print("{}".format(args).replace(", ", ",\n"))
    device = torch.device(args.device)
    seed = args.seed + misc.get_rank()
    torch.manual_seed(seed)
    np.random.seed(seed)
    cudnn.benchmark = True

    dataset_train = Images(transform=RandomCrop())
    num_tasks = misc.get_world_size()
    global_rank = misc.get_rank()
    sampler_train = torch.utils.data.DistributedSampler(dataset_train, num_replicas=num_tasks, rank=global_rank,
                                                        shuffle=True)
    print("Sampler_train = %s" % str(sampler_train))
    log_writer = open(os.path.join(args.log_dir, "scalars.txt"), "a") if global_rank == 0 and args.log_dir else None
    data_loader_train = torch.utils.data.DataLoader(
        dataset_train, sampler=sampler_train, batch_size=args.batch_size, num_workers=args.num_workers,
        pin_memory=args.pin_mem, drop_last=True)

    model = models_mae.__dict__[args.model](norm_pix_loss=args.norm_pix_loss)
    model.to(device)
    model_without_ddp = model
    eff_batch_size = args.batch_size * args.accum_iter * misc.get_world_size()
    if args.lr is None:
        args.lr = args.blr * eff_batch_size / 256
    print("actual lr: %.2e, accumulate grad iterations: %d, effective batch size: %d" % (
        args.lr, args.accum_iter, eff_batch_size))
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu], find_unused_parameters=True)
        model_without_ddp = model.module
    optimizer = torch.optim.AdamW(add_weight_decay(model_without_ddp, args.weight_decay), lr=args.lr, betas=(0.9, 0.95))
    loss_scaler = NativeScaler()
    misc.load_model(args=args, model_without_ddp=model_without_ddp, optimizer=optimizer, loss_scaler=loss_scaler)

    print(f"Start training for {args.epochs} epochs")
    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            data_loader_train.sampler.set_epoch(epoch)
        train_stats = train_one_epoch(model, data_loader_train, optimizer, device, epoch, loss_scaler, log_writer, args)
        if args.output_dir and (epoch % 20 == 0 or epoch + 1 == args.epochs):
            misc.save_model(args, epoch, model_without_ddp, optimizer, loss_scaler)
        if args.output_dir and misc.is_main_process():
            with open(os.path.join(args.output_dir, "log.txt"), mode="a", encoding="utf-8") as f:
                f.write(json.dumps({**{f"train_{k}": v for k, v in train_stats.items()}, "epoch": epoch}) + "\n")


if __name__ == "__main__":
    args = argparse.ArgumentParser(parents=[get_args_parser()]).parse_args()
    Path(args.output_dir).mkdir(parents=True, exist_ok=True)
    main(args)
