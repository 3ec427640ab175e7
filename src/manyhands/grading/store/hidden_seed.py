"""The hidden seed under which a submission is graded, where a class has none in common."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from manyhands.grading.store import references
from manyhands.shared.atomic import write_file

if TYPE_CHECKING:
    from pathlib import Path

    from nbformat import NotebookNode

SEEDS = 3


def draw(solution_path: str | Path, solution: NotebookNode, image: str = "") -> int:
    """Choose one of this machine's few hidden seeds.

    Three times in four, it is one whose reference for this solution is kept.
    """
    path = references.cache_folder() / "seeds.json"
    try:
        seeds = [int(seed) for seed in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        seeds = []
    if len(seeds) != SEEDS:
        seeds = [secrets.randbelow(2**31 - 1) + 1 for _ in range(SEEDS)]
        write_file(path, json.dumps(seeds))
    with_reference = [
        seed
        for seed in seeds
        if references.is_kept(references.key(solution_path, solution, seed, image))
    ]
    return secrets.choice(with_reference if with_reference and secrets.randbelow(4) else seeds)
