"""The small training: its endless order of rows, and that its docstring names all of its state."""

import random
from copy import deepcopy

import numpy as np
import torch

from manyhands.elastic.job import IMAGES, PER_RANK, Job, endless
from manyhands.elastic.mortal import in_process


def test_each_epoch_is_a_permutation_of_its_own_whatever_the_batches():
    whole = endless(0, 30, total=10, seed=4)
    epochs = [whole[start : start + 10] for start in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert endless(3, 4, 10, 4) + endless(7, 20, 10, 4) == whole[3:27]
    assert endless(0, 10, 10, 5) != epochs[0]


def _lives(seed, steps, at):
    """Weights at the end without a pause, and with one.

    After the pause another job takes over all that the docstring names.
    """
    job = Job(seed)
    for _ in range(at):
        job.train_step()
    states = deepcopy([part.state_dict() for part in (job.model, job.optimizer, job.scheduler)])
    rest = job.seen, job.noise.bit_generator.state, torch.get_rng_state(), random.getstate()
    other = Job(seed + 1)
    for part, state in zip((other.model, other.optimizer, other.scheduler), states, strict=True):
        part.load_state_dict(state)
    other.seen, other.noise.bit_generator.state = rest[:2]
    ends = []
    for life in (job, other):
        torch.set_rng_state(rest[2])
        random.setstate(rest[3])
        ends.append([life.train_step() for _ in range(steps - at)])
    return ends


def test_a_job_is_what_its_docstring_says_it_remembers():
    ends = in_process(_lives, 3, 20, 7)
    assert ends.error == "" and ends.value[0] == ends.value[1]


def _first_steps(worlds):
    losses_by_seen = []
    for world in worlds:
        job = Job(0, world)
        losses = [job.train_step() for _ in range(40 * 4 // world)]
        losses_by_seen.append((job.seen, float(np.mean(losses[:3])), float(np.mean(losses[-3:]))))
    return losses_by_seen


def test_any_number_of_ranks_learns_and_takes_its_rows():
    for (seen, first, last), world in zip(
        in_process(_first_steps, (2, 4)).value, (2, 4), strict=True
    ):
        assert seen == 40 * 4 // world * world * PER_RANK > IMAGES
        assert last < first / 2
