"""A cosine with a warm-up, set for each step."""

import numpy as np


def cosine_lr(optimizer, base_lr, warmup_length, steps):
    def _lr_adjuster(step):
        if step < warmup_length:
            lr = base_lr * (step + 1) / warmup_length
        else:
            lr = 0.5 * (1 + np.cos(np.pi * (step - warmup_length) / (steps - warmup_length))) * base_lr
        for param_group in optimizer.param_groups:
            param_group["lr"] = lr
        return lr

    return _lr_adjuster
