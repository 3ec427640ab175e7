"""A small GPT, the network of units 14 to 16.

It can be cut by layers, by heads and columns, or by weights.

Radford, Wu, Child, Luan, Amodei, Sutskever, "Language Models are Unsupervised Multitask Learners",
2019; without dropout and without tied weights.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

SYMBOLS, WIDTH, HEADS, BLOCKS, CONTEXT = 128, 64, 4, 4, 64


class Block(nn.Module):
    """Attention, then two linear layers, each of which adds to its input.

    The input [rows, places, width] keeps its shape.

    The number of heads follows from the columns that `q` gives: a rank that holds half of the
    columns of `q`, `k`, `v` computes half of the heads. `out` and `down` then hold the matching
    columns of their inputs.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head_size = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [rows, places, width] after attention and the two linear layers."""
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        """What each position takes from itself and the earlier ones: [rows, places, width]."""
        # [rows, places, columns] -> [rows, heads, places, head_size]
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / self.head_size**0.5).masked_fill(later, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class GPT(nn.Module):
    """The network, or one stage of it: from symbols to scores.

    It takes symbols [rows, places], and gives scores [rows, places, SYMBOLS].

    Stage `stage` of `stages` holds its blocks only; the first also the embeddings, the last also
    the final norm and the head. Between stages goes [rows, places, width]. The names of the
    parameters, and their values at the start, are those of the whole network. ValueError if heads
    or stages do not fit.
    """

    def __init__(
        self,
        stage: int = 0,
        stages: int = 1,
        width: int = WIDTH,
        heads: int = HEADS,
        blocks: int = BLOCKS,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(
                f"width {width} does not divide into {heads} heads: choose a width that is a "
                "multiple of the heads"
            )
        if not 1 <= stages <= blocks:
            raise ValueError(
                f"{stages} stages cannot be made of {blocks} blocks: each stage needs at least one "
                "block"
            )
        if not 0 <= stage < stages:
            raise ValueError(f"stage {stage} is not one of 0 to {stages - 1}: the first stage is 0")
        mine = range(blocks * stage // stages, blocks * (stage + 1) // stages)
        self.first, self.last = stage == 0, stage == stages - 1
        if self.first:
            self.symbols, self.places = nn.Embedding(SYMBOLS, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleDict({str(block): Block(width, heads) for block in mine})
        if self.last:
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, SYMBOLS, bias=False)
        self.to(dtype)
        _draw_weights(self)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores, or what goes on to the next stage.

        ValueError for more than CONTEXT symbols.
        """
        if self.first:
            if x.shape[1] > CONTEXT:
                raise ValueError(
                    f"{x.shape[1]} symbols do not fit into a context of {CONTEXT}: give only the "
                    "last ones"
                )
            x = self.symbols(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks.values():
            x = block(x)
        return self.head(self.norm(x)) if self.last else x


def _draw_weights(model: nn.Module) -> None:
    """Draw each matrix from a seed that its name gives.

    So a stage gets the same numbers as the whole network.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                draw = np.random.default_rng(list(name.encode()))
                parameter.copy_(
                    torch.from_numpy(
                        draw.normal(0, parameter.shape[1] ** -0.5, tuple(parameter.shape))
                    )
                )
            elif name.endswith("bias"):
                parameter.zero_()


def loss_of(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of scores for the symbols that follow.

    Scores are [rows, places, SYMBOLS], targets [rows, places].
    """
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
