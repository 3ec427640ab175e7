"""Train a character model on several GPUs: torchrun --standalone --nproc_per_node=2 main.py trainer.max_epochs=4"""

import os
import random
import sys

import numpy as np
import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.utils.data import random_split

from char_dataset import CharDataset
from config import read_config
from model import GPT, create_optimizer
from trainer import Trainer, TrainerConfig


def verify_min_gpu_count(min_gpus=2):
    return torch.accelerator.is_available() and torch.accelerator.device_count() >= min_gpus


def ddp_setup():
    acc = torch.accelerator.current_accelerator()
    rank = int(os.environ["LOCAL_RANK"])
    device = torch.device(f"{acc}:{rank}")
    init_process_group(backend=torch.distributed.get_default_backend_for_device(device))
    torch.accelerator.set_device_index(rank)


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def get_train_objs(cfg):
    dataset = CharDataset(**cfg["data"])
    train_len = int(len(dataset) * 0.9)
    lengths = [train_len, len(dataset) - train_len]
    train_set, test_set = random_split(dataset, lengths, generator=torch.Generator().manual_seed(cfg["seed"]))
    model = GPT(vocab_size=dataset.vocab_size, block_size=dataset.block_size, **cfg["gpt"])
    return model, create_optimizer(model, **cfg["optimizer"]), train_set, test_set


def main():
    cfg = read_config("gpt2_train_cfg.toml", sys.argv[1:])
    ddp_setup()
    set_seed(cfg["seed"] + int(os.environ["RANK"]))
    model, optimizer, train_set, test_set = get_train_objs(cfg)
    trainer = Trainer(TrainerConfig(**cfg["trainer"]), model, optimizer, train_set, test_set)
    trainer.train()
    destroy_process_group()


if __name__ == "__main__":
    if not verify_min_gpu_count():
        print("At least 2 GPUs are needed for this example. Exiting.")
        sys.exit()
    main()
