"""The ranks and their devices."""

import os

import torch


def is_global_master(args):
    return args.rank == 0


def is_master(args):
    return is_global_master(args)


def world_info_from_env():
    local_rank = int(os.environ.get("LOCAL_RANK", os.environ.get("SLURM_LOCALID", 0)))
    rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0)))
    world_size = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", 1)))
    return local_rank, rank, world_size


def init_distributed_device(args):
    args.local_rank, args.rank, args.world_size = world_info_from_env()
    args.distributed = args.world_size > 1
    if args.distributed:
        torch.distributed.init_process_group(backend=args.dist_backend, init_method=args.dist_url)
        args.world_size = torch.distributed.get_world_size()
        args.rank = torch.distributed.get_rank()
    device = f"cuda:{args.local_rank}" if torch.cuda.is_available() else "cpu"
    if torch.cuda.is_available():
        torch.cuda.set_device(device)
    args.device = device
    return torch.device(device)
