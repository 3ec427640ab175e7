"""Logging from rank 0 only."""

import logging

import torch

logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%m/%d/%Y %I:%M:%S %p", level=logging.INFO)


def get_logger():
    return logging.getLogger(__name__)


def rank_log(_rank, logger, msg):
    if _rank == 0:
        logger.info(f" {msg}")


def verify_min_gpu_count(min_gpus=2):
    """Whether there are as many GPUs as the example needs."""
    return torch.cuda.is_available() and torch.cuda.device_count() >= min_gpus
