"""A rank with a device that works on its own, on a virtual clock.

It is something to measure, whose true speed is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from manyhands.simulate.checked_input import Array

LAUNCH_S = 0.0004  # of the host, to put a step into the device's queue


class Bench:
    """One of `world` ranks that all run the same program.

    A step is put into the queue of the device and runs there, as on a GPU, while the host goes on.

    `step_s`: seconds that each step takes on the device until the slowest rank has the sum of the
    gradients. If more steps are made, these numbers repeat, except for the first `slow_steps`,
    which are slower because something is compiled or allocated.
    """

    def __init__(self, world: int, step_s: Sequence[float] | Array, slow_steps: int = 0) -> None:
        self.world = world
        self._step_s, self._slow_steps = np.asarray(step_s, float), slow_steps
        self._host_s = self._device_s = 0.0
        self._made = 0

    def step(self) -> None:
        """Start one training step on the device; returns at once."""
        self._host_s += LAUNCH_S
        self._device_s = max(self._device_s, self._host_s) + self._step_s[self._place()]
        self._made += 1

    def synchronize(self) -> None:
        """Wait until the device has done everything that was started."""
        self._host_s = max(self._host_s, self._device_s)

    def now_s(self) -> float:
        """What the clock of the host shows, in seconds."""
        return self._host_s

    @property
    def made(self) -> int:
        """How many steps were started."""
        return self._made

    def _place(self) -> int:
        first, size = self._slow_steps, len(self._step_s)
        return self._made if self._made < size else first + (self._made - first) % (size - first)
