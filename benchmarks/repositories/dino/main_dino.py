"""Self-distillation without labels: a student learns what an average of its own weights, the teacher, says of other
crops of the same image."""

import argparse
import json
import math
import os
import sys
from pathlib import Path

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

import utils
import vision_transformer as vits
from vision_transformer import DINOHead


def get_args_parser():
    parser = argparse.ArgumentParser("DINO", add_help=False)
    parser.add_argument("--arch", default="vit_tiny")
    parser.add_argument("--out_dim", default=64, type=int)
    parser.add_argument("--momentum_teacher", default=0.996, type=float)
    parser.add_argument("--teacher_temp", default=0.04, type=float)
    parser.add_argument("--use_fp16", default=True, type=lambda text: text.lower() in ("1", "true", "on"))
    parser.add_argument("--weight_decay", default=0.04, type=float)
    parser.add_argument("--weight_decay_end", default=0.4, type=float)
    parser.add_argument("--clip_grad", default=0.3, type=float)
    parser.add_argument("--batch_size_per_gpu", default=8, type=int)
    parser.add_argument("--epochs", default=4, type=int)
    parser.add_argument("--freeze_last_layer", default=1, type=int)
    parser.add_argument("--lr", default=0.05, type=float, help="for a batch of 256 images; scaled with the batch size")
    parser.add_argument("--warmup_epochs", default=1, type=int)
    parser.add_argument("--min_lr", default=1e-6, type=float)
    parser.add_argument("--drop_path_rate", default=0.1, type=float)
    parser.add_argument("--local_crops_number", default=4, type=int)
    parser.add_argument("--output_dir", default=".")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--num_workers", default=0, type=int)
    parser.add_argument("--dist_url", default="env://")
    return parser


class DataAugmentationDINO:
    def __init__(self, local_crops_number):
        self.local_crops_number = local_crops_number

    def crop(self, image, size):
        top, left = torch.randint(0, image.shape[1] - size + 1, (2,)).tolist()
        image = image[:, top:top + size, left:left + size]
        return image.flip(-1) if torch.rand(()) < 0.5 else image.clone()

    def __call__(self, image):
        return [self.crop(image, 16) for _ in range(2)] + [self.crop(image, 8) for _ in range(self.local_crops_number)]


class Images(torch.utils.data.Dataset):
    """Images that are made here: one colour and texture for each class."""

    def __init__(self, length=96, classes=4, transform=None):
        generator = torch.Generator().manual_seed(7)
        self.labels = torch.arange(length) % classes
        textures = torch.randn(classes, 3, 20, 20, generator=generator)
        self.images = textures[self.labels] + 0.5 * torch.randn(length, 3, 20, 20, generator=generator)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.images[index]), int(self.labels[index])


class DINOLoss(nn.Module):
    def __init__(self, out_dim, ncrops, teacher_temp, student_temp=0.1, center_momentum=0.9):
        super().__init__()
        self.ncrops, self.teacher_temp, self.student_temp = ncrops, teacher_temp, student_temp
        self.center_momentum = center_momentum
        self.register_buffer("center", torch.zeros(1, out_dim))

    def forward(self, student_output, teacher_output):
        student_out = (student_output / self.student_temp).chunk(self.ncrops)
        teacher_out = F.softmax((teacher_output - self.center) / self.teacher_temp, dim=-1).detach().chunk(2)
        total_loss, n_loss_terms = 0, 0
        for iq, q in enumerate(teacher_out):
            for v in range(len(student_out)):
                if v == iq:
                    continue
                loss = torch.sum(-q * F.log_softmax(student_out[v], dim=-1), dim=-1)
                total_loss += loss.mean()
                n_loss_terms += 1
        total_loss /= n_loss_terms
        self.update_center(teacher_output)
        return total_loss

    @torch.no_grad()
    def update_center(self, teacher_output):
        batch_center = torch.sum(teacher_output, dim=0, keepdim=True)
        dist.all_reduce(batch_center)
        batch_center = batch_center / (len(teacher_output) * dist.get_world_size())
        self.center = self.center * self.center_momentum + batch_center * (1 - self.center_momentum)


def train_dino(args):
    utils.init_distributed_mode(args)
    utils.fix_random_seeds(args.seed)
    print("\n".join("%s: %s" % (k, str(v)) for k, v in sorted(dict(vars(args)).items())))
    cudnn.benchmark = True

    dataset = Images(transform=DataAugmentationDINO(args.local_crops_number))
    sampler = torch.utils.data.DistributedSampler(dataset, shuffle=True)
    data_loader = torch.utils.data.DataLoader(dataset, sampler=sampler, batch_size=args.batch_size_per_gpu,
                                              num_workers=args.num_workers, pin_memory=True, drop_last=True)
    print(f"Data loaded: there are {len(dataset)} images.")

    student = vits.__dict__[args.arch](drop_path_rate=args.drop_path_rate)
    teacher = vits.__dict__[args.arch]()
    embed_dim = student.embed_dim
    student = utils.MultiCropWrapper(student, DINOHead(embed_dim, args.out_dim))
    teacher = utils.MultiCropWrapper(teacher, DINOHead(embed_dim, args.out_dim))
    student, teacher = student.cuda(), teacher.cuda()
    if utils.has_batchnorms(student):
        student = nn.SyncBatchNorm.convert_sync_batchnorm(student)
        teacher = nn.SyncBatchNorm.convert_sync_batchnorm(teacher)
        teacher = nn.parallel.DistributedDataParallel(teacher, device_ids=[args.gpu])
        teacher_without_ddp = teacher.module
    else:
        teacher_without_ddp = teacher
    student = nn.parallel.DistributedDataParallel(student, device_ids=[args.gpu])
    teacher_without_ddp.load_state_dict(student.module.state_dict())
    for p in teacher.parameters():
        p.requires_grad = False
    print(f"Student and Teacher are built: they are both {args.arch} network.")

    dino_loss = DINOLoss(args.out_dim, args.local_crops_number + 2, args.teacher_temp).cuda()
    optimizer = torch.optim.AdamW(utils.get_params_groups(student))
    fp16_scaler = torch.cuda.amp.GradScaler() if args.use_fp16 else None

    lr_schedule = utils.cosine_scheduler(
        args.lr * (args.batch_size_per_gpu * utils.get_world_size()) / 256.,
        args.min_lr, args.epochs, len(data_loader), warmup_epochs=args.warmup_epochs)
    wd_schedule = utils.cosine_scheduler(args.weight_decay, args.weight_decay_end, args.epochs, len(data_loader))
    momentum_schedule = utils.cosine_scheduler(args.momentum_teacher, 1, args.epochs, len(data_loader))

    to_restore = {"epoch": 0}
    utils.restart_from_checkpoint(os.path.join(args.output_dir, "checkpoint.pth"), run_variables=to_restore,
                                  student=student, teacher=teacher, optimizer=optimizer, fp16_scaler=fp16_scaler,
                                  dino_loss=dino_loss)
    for epoch in range(to_restore["epoch"], args.epochs):
        data_loader.sampler.set_epoch(epoch)
        train_stats = train_one_epoch(student, teacher, teacher_without_ddp, dino_loss, data_loader, optimizer,
                                      lr_schedule, wd_schedule, momentum_schedule, epoch, fp16_scaler, args)
        save_dict = {"student": student.state_dict(), "teacher": teacher.state_dict(),
                     "optimizer": optimizer.state_dict(), "epoch": epoch + 1, "args": args,
                     "dino_loss": dino_loss.state_dict()}
        if fp16_scaler is not None:
            save_dict["fp16_scaler"] = fp16_scaler.state_dict()
        utils.save_on_master(save_dict, os.path.join(args.output_dir, "checkpoint.pth"))
        if utils.is_main_process():
            with (Path(args.output_dir) / "log.txt").open("a") as f:
                f.write(json.dumps({**{f"train_{k}": v for k, v in train_stats.items()}, "epoch": epoch}) + "\n")


def train_one_epoch(student, teacher, teacher_without_ddp, dino_loss, data_loader, optimizer, lr_schedule, wd_schedule,
                    momentum_schedule, epoch, fp16_scaler, args):
    metric_logger = utils.MetricLogger()
    header = f"Epoch: [{epoch}/{args.epochs}]"
    for it, (images, _) in enumerate(metric_logger.log_every(data_loader, 10, header)):
        it = len(data_loader) * epoch + it
        for i, param_group in enumerate(optimizer.param_groups):
            param_group["lr"] = lr_schedule[it]
            if i == 0:
                param_group["weight_decay"] = wd_schedule[it]

        images = [im.cuda(non_blocking=True) for im in images]
        with torch.cuda.amp.autocast(fp16_scaler is not None):
            teacher_output = teacher(images[:2])
            student_output = student(images)
            loss = dino_loss(student_output, teacher_output)
        if not math.isfinite(loss.item()):
            print("Loss is {}, stopping training".format(loss.item()), force=True)
            sys.exit(1)

        optimizer.zero_grad()
        if fp16_scaler is None:
            loss.backward()
            if args.clip_grad:
                utils.clip_gradients(student, args.clip_grad)
            utils.cancel_gradients_last_layer(epoch, student, args.freeze_last_layer)
            optimizer.step()
        else:
            fp16_scaler.scale(loss).backward()
            if args.clip_grad:
                fp16_scaler.unscale_(optimizer)
                utils.clip_gradients(student, args.clip_grad)
            utils.cancel_gradients_last_layer(epoch, student, args.freeze_last_layer)
            fp16_scaler.step(optimizer)
            fp16_scaler.update()

        with torch.no_grad():
            m = momentum_schedule[it]
            for param_q, param_k in zip(student.module.parameters(), teacher_without_ddp.parameters()):
                param_k.data.mul_(m).add_((1 - m) * param_q.detach().data)

        torch.cuda.synchronize()
        metric_logger.update(loss=loss.item(), lr=optimizer.param_groups[0]["lr"],
                             wd=optimizer.param_groups[0]["weight_decay"])
    metric_logger.synchronize_between_processes()
    return {k: meter.global_avg for k, meter in metric_logger.meters.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser("DINO", parents=[get_args_parser()])
    args = parser.parse_args()
    Path(args.output_dir).mkdir(parents=True, exist_ok=True)
    train_dino(args)
