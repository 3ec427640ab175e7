"""Ours against recorded runs of the real ChainerMN 7.8.1.

tests/oracle/*.json were given, and tests/oracle/recorded/*.json made by record.py there.
"""

import json
from pathlib import Path

import pytest
from oracle_runner import run_case

from oracle import programs

ORACLE = Path(__file__).parents[1] / "oracle"
CASES = sorted([*ORACLE.glob("*.json"), *ORACLE.glob("recorded/*.json")])


def read(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    "path", CASES, ids=lambda path: str(path.relative_to(ORACLE)).removesuffix(".json")
)
def test_case(pool, path):
    wrong = pool.values(run_case, read(path)["nprocs"], str(path), timeout_s=30)
    assert not any(wrong), "\n".join(
        f"rank {rank}: {text}" for rank, texts in enumerate(wrong) for text in texts
    )


def test_every_category_is_there():
    """The names of the categories are those of tests/oracle/README.md."""
    categories = {read(path)["category"] for path in CASES}
    assert categories >= {
        "function",
        "chain",
        "multi_node_chain_list",
        "n_step_rnn",
        "parallel_conv",
        "mnbn",
        "hazard",
    }


def test_every_program_is_recorded():
    used = {programs.program_of(path.stem).__name__ for path in CASES}
    assert used == {program.__name__ for program in programs.PROGRAMS.values()}


def test_a_wrong_gradient_is_seen(gloo_pool, tmp_path):
    """The comparison itself: one number of a record changed."""
    case = read(ORACLE / "allgather_n2.json")
    case["ranks"][1]["grad_inputs"]["x"]["data"][4] += 1e-6
    case["ranks"][0]["outputs"]["y1"]["data"][0] += 1e-6
    (tmp_path / "allgather_n2.json").write_text(json.dumps(case))
    wrong = gloo_pool.values(run_case, 2, str(tmp_path / "allgather_n2.json"))
    assert [[text.split(":")[0] for text in texts] for texts in wrong] == [
        ["y1"],
        ["gradient of x"],
    ]
