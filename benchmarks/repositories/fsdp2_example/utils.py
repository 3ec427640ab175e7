"""Looks at a sharded model before training, and finds its latest checkpoint."""

import os

import torch
from torch.distributed.tensor import Shard


def inspect_model(model):
    for param in model.layers.parameters():
        assert param.placements == (Shard(0),)
        assert param.dtype == torch.float32


def inspect_mixed_precision(model):
    model.layers[0].unshard()
    for param in model.layers[0].parameters(recurse=True):
        assert param.dtype == torch.bfloat16
    model.layers[0].reshard()


def get_latest_checkpoint_folder(path):
    numbers = [int(name) for name in os.listdir(path) if name.isdigit()] if os.path.exists(path) else []
    return max(numbers, default=None)
