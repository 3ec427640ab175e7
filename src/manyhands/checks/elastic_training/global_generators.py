"""The generators that a whole process shares and from which a training run draws.

A function that only distributes rows must not change them.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping


def states() -> dict[str, Any]:
    """Return {name: its state} of the generators of Python, NumPy and torch."""
    import torch

    return {
        "Python's random": random.getstate(),
        "NumPy": np.random.get_state(),
        "torch": [torch.get_rng_state().numpy()],
    }


def changed(before: Mapping[str, Any]) -> str | None:
    """Return the name of a generator that is no longer as it was before, or None.

    All of them are set back.
    """
    import torch

    generator = next(
        (name for name, state in states().items() if not _same(state, before[name])), None
    )
    random.setstate(before["Python's random"])
    np.random.set_state(before["NumPy"])
    torch.set_rng_state(torch.from_numpy(before["torch"][0]))
    return generator


def _same(state: Any, before: Any) -> bool:
    return all(np.array_equal(part, other) for part, other in zip(state, before, strict=True))
