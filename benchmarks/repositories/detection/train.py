"""Train a detector: torchrun --nproc_per_node=2 train.py --sync-bn"""

import os

import torch
import torch.utils.data

import utils
from engine import evaluate, train_one_epoch
from group_by_aspect_ratio import GroupedBatchSampler, create_aspect_ratio_groups
from models import BoxPredictor, Detector


class Shapes(torch.utils.data.Dataset):
    """Images of different sizes, each with one bright rectangle, made here."""

    def __init__(self, length, seed, train):
        self.length, self.seed, self.train = length, seed, train

    def __len__(self):
        return self.length

    def get_height_and_width(self, idx):
        generator = torch.Generator().manual_seed(self.seed + idx)
        return torch.randint(20, 36, (2,), generator=generator).tolist()

    def __getitem__(self, idx):
        height, width = self.get_height_and_width(idx)
        generator = torch.Generator().manual_seed(1000 + self.seed + idx)
        image = 0.1 * torch.randn(3, height, width, generator=generator)
        left, top = torch.randint(0, 8, (2,), generator=generator).tolist()
        label = 1 + idx % 3
        image[label - 1, top:top + 10, left:left + 12] += 1
        box = torch.tensor([left, top, left + 12, top + 10], dtype=torch.float32)
        if self.train and torch.rand(1) < 0.5:
            image, box = image.flip(-1), torch.stack([width - box[2], box[1], width - box[0], box[3]])
        return image, {"boxes": box[None], "labels": torch.tensor([label]), "image_id": idx}


def get_args_parser():
    import argparse

    parser = argparse.ArgumentParser(description="PyTorch Detection Training")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-b", "--batch-size", default=4, type=int)
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("-j", "--workers", default=0, type=int)
    parser.add_argument("--lr", default=0.02, type=float)
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("--lr-steps", default=[2, 3], nargs="+", type=int)
    parser.add_argument("--lr-gamma", default=0.1, type=float)
    parser.add_argument("--print-freq", default=5, type=int)
    parser.add_argument("--output-dir", default=".")
    parser.add_argument("--resume", default="")
    parser.add_argument("--start_epoch", default=0, type=int)
    parser.add_argument("--aspect-ratio-group-factor", default=1, type=int)
    parser.add_argument("--sync-bn", dest="sync_bn", action="store_true")
    parser.add_argument("--world-size", default=1, type=int)
    parser.add_argument("--dist-url", default="env://")
    parser.add_argument("--amp", action="store_true")
    return parser


def main(args):
    os.makedirs(args.output_dir, exist_ok=True)
    utils.init_distributed_mode(args)
    print(args)
    device = torch.device(args.device)

    dataset, num_classes = Shapes(68, 0, train=True), 4
    dataset_test = Shapes(9, 5000, train=False)
    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(dataset)
        test_sampler = torch.utils.data.distributed.DistributedSampler(dataset_test, shuffle=False)
    else:
        train_sampler = torch.utils.data.RandomSampler(dataset)
        test_sampler = torch.utils.data.SequentialSampler(dataset_test)
    if args.aspect_ratio_group_factor >= 0:
        group_ids = create_aspect_ratio_groups(dataset, k=args.aspect_ratio_group_factor)
        train_batch_sampler = GroupedBatchSampler(train_sampler, group_ids, args.batch_size)
    else:
        train_batch_sampler = torch.utils.data.BatchSampler(train_sampler, args.batch_size, drop_last=True)
    data_loader = torch.utils.data.DataLoader(dataset, batch_sampler=train_batch_sampler, num_workers=args.workers,
                                              collate_fn=utils.collate_fn)
    data_loader_test = torch.utils.data.DataLoader(dataset_test, batch_size=1, sampler=test_sampler,
                                                   num_workers=args.workers, collate_fn=utils.collate_fn)

    model = Detector(num_classes=91)
    model.to(device)
    if args.distributed and args.sync_bn:
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model.box_predictor = BoxPredictor(16, num_classes).to(device)  # of another data set than the weights
    model_without_ddp = model
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        model_without_ddp = model.module

    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
    lr_scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=args.lr_steps, gamma=args.lr_gamma)
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=False)
        model_without_ddp.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        lr_scheduler.load_state_dict(checkpoint["lr_scheduler"])
        args.start_epoch = checkpoint["epoch"] + 1

    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        train_one_epoch(model, optimizer, data_loader, device, epoch, args.print_freq, scaler)
        lr_scheduler.step()
        if args.output_dir:
            utils.save_on_master({"model": model_without_ddp.state_dict(), "optimizer": optimizer.state_dict(),
                                  "lr_scheduler": lr_scheduler.state_dict(), "args": args, "epoch": epoch},
                                 os.path.join(args.output_dir, "checkpoint.pth"))
        evaluate(model, data_loader_test, device=device)


if __name__ == "__main__":
    main(get_args_parser().parse_args())
