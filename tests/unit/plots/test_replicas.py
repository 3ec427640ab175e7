"""The figures of unit 02 draw what they are given, the same each time.

And the quiet import is quiet unless it fails.
"""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from manyhands.plots import replicas

ONE = np.linspace(-1, 1, 41)


def scaling():
    return replicas.gradient_scaling(ONE, {1: ONE, 4: 4 * ONE}, {1: ONE, 4: ONE}, points=9)


def test_gradient_scaling_names_the_replicas_and_is_the_same_each_time():
    text = scaling().text
    assert text == scaling().text
    for word in (
        "1 replica",
        "4 replicas",
        "loss divided by the global batch",
        "gradient on one device",
    ):
        assert word in text
    # 9 points for each of 2 x 2 sets, and a mark for each of the 2 lines of the legend
    markers = re.findall(r"<use [^>]*stroke-width: 0.4", text)
    assert len(markers) == 4 * 9 + 2


def test_words_can_be_translated():
    words = {**replicas.SCALING_WORDS, "right": "geteilt durch alle"}
    assert (
        "geteilt durch alle" in replicas.gradient_scaling(ONE, {2: ONE}, {2: ONE}, words=words).text
    )


@pytest.mark.parametrize("shards", [[8], [3, 3, 3, 1]])
def test_step_shows_every_shard(shards):
    text = replicas.replicated_step(shards).text
    for i, examples in enumerate(shards):
        assert f"{examples} of {sum(shards)}" in text and text.count(f"replica {i}<") == 2


NOISY = """
import os
from manyhands.quiet import quietly
with quietly():
    os.write(2, b"noise\\n")
    {body}
os.write(2, b"after\\n")
"""


def stderr_of(body):
    return subprocess.run(
        [sys.executable, "-c", NOISY.format(body=body)],
        capture_output=True,
        text=True,
        env=os.environ,
    ).stderr


def test_quietly_swallows_what_comes_from_below():
    assert stderr_of("pass") == "after\n"


def test_quietly_shows_it_after_all_where_the_block_fails():
    stderr = stderr_of("raise ImportError('no such file')")
    assert (
        stderr.startswith("noise\n")
        and "ImportError: no such file" in stderr
        and "after" not in stderr
    )
