"""The right answers that unit 06's checks compare with, against PyTorch's own."""

import re
from pathlib import Path

import pytest

from manyhands.checks.ddp import (
    batch_file,
    batch_file_diagnosis,
    bug_diagnosis,
    diagnosis,
    no_sync_diagnosis,
    sampler_criteria,
)
from manyhands.checks.ddp.messages import CRITERIA, HINTS, MISTAKES


@pytest.mark.parametrize("n, world_size", [(10, 4), (12, 4), (3, 4), (1, 4), (7, 1), (20, 3)])
@pytest.mark.parametrize("epoch", [0, 5])
def test_dealt_is_torchs_distributed_sampler(n, world_size, epoch):
    torch = pytest.importorskip("torch")
    from torch.utils.data import DistributedSampler

    drawn = torch.randperm(n, generator=torch.Generator().manual_seed(3 + epoch)).tolist()
    for rank in range(world_size):
        theirs = DistributedSampler(range(n), world_size, rank, shuffle=True, seed=3)
        theirs.set_epoch(epoch)
        assert list(theirs) == sampler_criteria.distribute(drawn, world_size)[rank]


def test_cut_closes_a_bucket_once_it_is_full():
    assert diagnosis.cut(["a", "b", "c"], {"a": 8, "b": 8, "c": 4}, 10) == [["c", "b"], ["a"]]
    assert diagnosis.cut(["a", "b", "c"], {"a": 8, "b": 8, "c": 4}, 4) == [["c"], ["b"], ["a"]]
    assert diagnosis.cut(["a", "b", "c"], {"a": 8, "b": 8, "c": 4}, 100) == [["c", "b", "a"]]


def test_a_bucket_never_leaves_before_the_one_in_front():
    buckets = [[["c", 1], ["b", 2]], [["a", 4]]]
    sent = ["sent", "allreduce", 3], ["sent", "allreduce", 4]
    assert diagnosis.schedule(buckets, ["c", "b", "a"]) == [
        ["ready", "c"],
        ["ready", "b"],
        sent[0],
        ["ready", "a"],
        sent[1],
        ["end"],
    ]
    assert diagnosis.schedule(buckets, ["a", "c", "b"]) == [
        ["ready", "a"],
        ["ready", "c"],
        ["ready", "b"],
        *sent,
        ["end"],
    ]


@pytest.mark.parametrize(
    "got, says",
    [
        ([8.0, 4.0], "too large by a factor of 4"),
        ([0.5, 0.25], "too small by a factor of 4"),
        ([5.0, 5.0], "rank's own gradient"),
        ([1.25, 1.25], "own gradient after a division"),
        (None, "is None"),
        ([0.0, 9.0], "neither the mean nor the sum"),
    ],
)
def test_a_wrong_average_is_named(got, says):
    assert says in diagnosis.average_mistake(got, [2.0, 1.0], [5.0, 5.0], 4)


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(
        len(steps) == 2 and all(steps) for steps in HINTS.values()
    )


def test_lines_for_sbatch_end_at_the_first_command():
    text = (
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node 1\n\n#SBATCH -n4\necho\n#SBATCH "
        "--nodes=9\n"
    )
    assert batch_file.directives(text) == {"nodes": "2", "ntasks-per-node": "1", "ntasks": "4"}


@pytest.mark.parametrize(
    "command, says",
    [
        (
            (
                "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node 2 --rdzv-backend=c10d "
                "--rdzv-endpoint=$FIRST:1234"
            ),
            (None, None),
        ),
        (
            (
                "srun bash -c 'torchrun --nnodes=$SLURM_NNODES --node_rank=$SLURM_NODEID "
                '--nproc_per_node=2 --master_addr=$FIRST --master_port=1234 "$@"\' sh'
            ),
            (None, None),
        ),
        (
            (
                "srun torchrun --nnodes $SLURM_NNODES --node-rank $SLURM_NODEID --nproc-per-node 2 "
                "--master-addr $FIRST"
            ),
            (None, "before srun started"),
        ),
        (
            "srun --ntasks-per-node 2 torchrun --nnodes $SLURM_NNODES --nproc-per-node 2",
            ("one is enough", "at its own address"),
        ),
        (
            (
                "srun python -u -m torch.distributed.run --nnodes 1 --nproc-per-node 2 "
                "--master-addr $FIRST"
            ),
            ("given --nnodes 1", "not told which node"),
        ),
        (
            (
                "srun -n1 -r 1 torchrun --nnodes 2 --node-rank 1 --nproc-per-node 2 --master-addr "
                "$FIRST 06_train.py --checkpoint digits.pt &\nsrun -N 1 -n 1 --nodelist=$FIRST "
                "torchrun --nnodes 2 --node-rank 0 --nproc-per-node 2 --master-addr $FIRST"
            ),
            (None, None),
        ),
        (
            (
                "srun --ntasks=1 torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d "
                "--rdzv-endpoint $FIRST:1"
            ),
            ("on the first node only", "2 torchruns, but only 1 joined"),
        ),
        ("torchrn", ("command not found", "command not found")),
    ],
)
def test_a_batch_file_is_run_with_stand_ins(command, says):
    first = "export FIRST=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
    run = batch_file.run(
        f"#!/bin/bash\n#SBATCH -N 2\n{first}\n{command} 06_train.py --checkpoint digits.pt", 3
    )
    problems = batch_file_diagnosis.nodes_problem(run), batch_file_diagnosis.meeting_problem(run)
    for problem, part in zip(problems, says, strict=True):
        assert problem is None if part is None else part in problem["mistake"]


@pytest.mark.parametrize(
    "end, says",
    [(" &", "kills everything that the job has started"), (" &\nwait", None), ("", None)],
)
def test_a_file_that_ends_before_what_it_has_started_is_told(end, says):
    torchrun = (
        "torchrun --nnodes $SLURM_NNODES --nproc-per-node 2 --rdzv-backend=c10d --rdzv-endpoint=x:1"
        " ./06_train.py --checkpoint=digits.pt"
    )
    problem = batch_file_diagnosis.nodes_problem(
        batch_file.run(f"#!/bin/bash\n#SBATCH -N 2\nsrun {torchrun}{end}\n", 3)
    )
    assert problem is None if says is None else says in problem["mistake"]


SILENT = {
    "sent": [0, 0, 2],
    "buckets": 2,
    "noted": False,
    "promises": [["after a block", True], ["in an inner block", True]],
}


@pytest.mark.parametrize(
    "changes, says",
    [
        ({}, None),
        ({"sent": [2, 2, 2]}, "inside no_sync"),
        ({"sent": [0, 2, 2]}, "nested in others"),
        ({"sent": [0, 0, 0]}, "set ddp.sync back"),
        ({"sent": [0, 0, 1], "noted": True}, "The cause is in exercise 4"),
        ({"promises": [["in an inner block", False]]}, "do not toggle it"),
    ],
)
def test_what_no_sync_does_not_keep_is_named(changes, says):
    problem = no_sync_diagnosis.silence_problem(0, {**SILENT, **changes})
    assert problem is None if says is None else says in problem["mistake"]


def test_every_situation_in_a_block_has_its_text():
    source = (
        Path(no_sync_diagnosis.__file__).with_name("no_sync_ranks.py").read_text(encoding="utf-8")
    )
    situations = source[source.index("SITUATIONS = {") :]
    assert {key[1] for key in MISTAKES if key[0] == "no_sync"} == set(
        re.findall(r'"([^"]+)": _', situations)
    )


def test_fewer_tasks_than_nodes_hold_the_job_at_fewer_nodes():
    text = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks=2\nsrun torchrun --nnodes $SLURM_NNODES"
    assert [batch_file.run(text, 3, nodes)["nodes"] for nodes in (None, 2, 4)] == [2, 2, 2]
    assert (
        "with --ntasks=2"
        in batch_file_diagnosis.nodes_problem(batch_file.run(text, 3, 4))["mistake"]
    )


def test_a_bucket_that_left_before_it_was_complete_is_told_from_one_that_left_late():
    buckets, late, early = (
        [[["b", 1]], [["a", 4]]],
        [["ready", "b"], ["ready", "a"]],
        [["ready", "a"], ["ready", "b"]],
    )
    sent = ["sent", "allreduce", 1], ["sent", "allreduce", 4]
    late, early = [*late, *sent, ["end"]], [early[0], sent[0], early[1], sent[1], ["end"]]
    assert diagnosis.schedule_problem(0, late, buckets)["mistake"] == MISTAKES["sent late"]
    assert diagnosis.schedule_problem(0, early, buckets)["mistake"] == MISTAKES["sent early"]


@pytest.mark.parametrize(
    "rows, says",
    [
        ([[0, 4], [1, 5]], None),
        (None, "list with the rows"),
        ([[0, 4]], "list with the rows"),
        ([[0, 4], [1, 2]], "of epoch 1"),
        ([[0, 1, 4, 5], [1, 5]], "not in its share"),
    ],
)
def test_the_rows_of_each_step_are_those_that_were_dealt(rows, says):
    problem = bug_diagnosis.rows_problem(0, {"rows": rows, "dealt": [[0, 4], [1, 5]], "epochs": 2})
    assert problem is None if says is None else says in problem["mistake"]
