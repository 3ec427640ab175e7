"""The network of a challenge: fully connected layers with ReLU between them."""

from itertools import pairwise

from torch import nn


def network_of(layers):
    """`layers` are the widths, from the samples' to the classes'."""
    parts = []
    for wide, narrow in pairwise(layers):
        parts += [nn.Linear(wide, narrow), nn.ReLU()]
    return nn.Sequential(*parts[:-1])
