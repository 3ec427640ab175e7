"""The network of a challenge: fully connected layers with ReLU between them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterable


def network_of(layers: Iterable[int]) -> nn.Sequential:
    """`layers` are the widths, from the samples' to the classes'."""
    parts: list[nn.Module] = []
    for wide, narrow in pairwise(layers):
        parts += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*parts[:-1])
