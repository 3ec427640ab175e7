"""A small GPT and a text: one task for every way of model parallelism.

It is for them what `manyhands.track` is for units 01 to 10.

The text is prose of this course, 7-bit characters, kept as it was: it does not follow the tutorials
when they change, so that the weights stay the same. Everything is float64 unless another type is
asked for.
"""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import torch

from manyhands.gpt.transformer import CONTEXT, GPT, SYMBOLS, loss_of

__all__ = ["CONTEXT", "GPT", "SYMBOLS", "batches", "loss_of", "text", "write"]
ROWS = 8


def text() -> str:
    """The whole text."""
    return files("manyhands.gpt").joinpath("reading.md").read_text(encoding="ascii")


def batches(step: int, rows: int = ROWS) -> tuple[torch.Tensor, torch.Tensor]:
    """The batch of a step, counted from 0: symbols, and the symbols that follow each of them.

    Both have the shape [rows, CONTEXT]. They are the same in every process: each takes its rows or
    its positions from them.
    """
    symbols = torch.frombuffer(bytearray(text(), "ascii"), dtype=torch.uint8).long()
    starts = np.random.default_rng([16, step]).integers(0, len(symbols) - CONTEXT, rows)
    windows = torch.stack([symbols[start : start + CONTEXT + 1] for start in starts.tolist()])
    return windows[:, :-1], windows[:, 1:]


@torch.no_grad()
def write(model: torch.nn.Module, prompt: str, n: int) -> str:
    """`prompt` and the n characters that the model writes after it.

    Each time it writes the one with the largest score.

    With `fully_shard` or a tensor-parallel model, every rank must call it, with the same arguments.
    ValueError if the prompt is empty, or has a character that is not ASCII.
    """
    if not prompt or not prompt.isascii():
        raise ValueError(
            f"the model cannot go on from {prompt!r}: give at least one character, ASCII only"
        )
    written = list(prompt.encode("ascii"))
    device = next(model.parameters()).device
    for _ in range(n):
        scores = model(torch.tensor([written[-CONTEXT:]], device=device))
        written.append(int(scores[0, -1].argmax()))
    return bytes(written).decode("ascii")
