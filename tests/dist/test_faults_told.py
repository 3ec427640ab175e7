"""What a report says: which call, and at which line.

`%%px` cells may be written as cells of a notebook are.
"""

import re

import pytest
from test_faults import assert_healthy, has_line, press_stop_when, provoke

from manyhands import Cluster
from manyhands.cluster import Hang, Interrupted, Mismatch, RankError
from manyhands.cluster.host.ports import reserve


@pytest.mark.parametrize(
    "code, words",
    [
        (
            (
                "x = torch.ones(4)\ndist.all_reduce(x, op=dist.ReduceOp.MAX if rank == 2 else "
                "dist.ReduceOp.SUM)"
            ),
            "all_reduce with SUM on ranks 0, 1, 3, all_reduce with MAX on rank 2.",
        ),
        (
            "x = torch.ones(4)\ndist.broadcast(x, src=1 if rank == 2 else 0)",
            "broadcast with root 0 on ranks 0, 1, 3, broadcast with root 1 on rank 2.",
        ),
        (
            "group = dist.new_group([0, 1] if rank == 0 else [0, 1, 2])",
            (
                "new_group in a group of ranks 0, 1 on rank 0, new_group in a group of ranks 0-2 on"
                " ranks 1-3."
            ),
        ),
    ],
    ids=["operation", "root", "members"],
)
def test_arguments_that_differ_on_one_rank(cluster, code, words):
    fault = provoke(cluster, code)
    assert type(fault) is Mismatch and len(fault.culprits) == 1
    has_line(fault, words)
    assert_healthy(cluster)


def test_one_operation_written_in_two_ways_is_no_mismatch(cluster):
    cluster.px(
        "x = torch.ones(4)\ndist.all_reduce(x, dist.ReduceOp(dist.ReduceOp.SUM)) if rank else "
        "dist.all_reduce(x)\ndist.gather(x, [x] * 4 if rank == 0 else None, dst=0)"
    )


@pytest.mark.parametrize(
    "call, shown",
    [
        ("dist.all_gather_single(torch.zeros(8), torch.ones(2))", "all_gather_single(float32 [2])"),
        (
            "dist.reduce_scatter_single(torch.zeros(2), torch.ones(8))",
            "reduce_scatter_single(float32 [2])",
        ),
        (
            "dist.all_gather_into_tensor(torch.zeros(8), torch.ones(2))",
            "all_gather_single(float32 [2])",
        ),
        (
            "dist.reduce_scatter_tensor(torch.zeros(2), torch.ones(8))",
            "reduce_scatter_single(float32 [2])",
        ),
    ],
    ids=["gather", "scatter", "gather, old name", "scatter, old name"],
)
def test_renamed_calls_are_noted_under_their_new_name(cluster, call, shown):
    fault = provoke(
        cluster,
        "import warnings\nwarnings.simplefilter('ignore', FutureWarning)\nif rank != 2:\n   "
        f" {call}",
    )
    assert type(fault) is Hang and fault.culprits == [2]
    has_line(fault, f"ranks 0, 1, 3 wait in {shown} at line 4 of this cell: {call}")
    assert_healthy(cluster)


def test_the_old_name_and_the_new_one_are_one_call(cluster):
    cluster.px("""\
import warnings
warnings.simplefilter("ignore", FutureWarning)
y = torch.zeros(4)
(dist.all_gather_single if rank else dist.all_gather_into_tensor)(y, torch.ones(1))
assert y.tolist() == [1.0] * 4""")


def test_a_wait_says_which_call_it_waits_for(cluster):
    fault = provoke(
        cluster,
        """\
        x, parts = torch.ones(4), [torch.ones(4) for _ in range(4)]
        works = [dist.broadcast(x, 0, async_op=True)]
        if rank != 1:
            works.append(dist.all_gather(parts, x, async_op=True))
            works[0].wait()
            works[1].wait()
        """,
    )
    assert type(fault) is Hang and fault.culprits == [1]
    has_line(
        fault,
        "ranks 0, 2, 3 wait in all_gather(float32 [4]) at line 6 of this cell: works[1].wait()",
    )
    has_line(fault, "rank 1 never called all_gather")
    assert_healthy(cluster)


def test_a_wrapper_of_the_framework_is_not_the_call(cluster):
    # torch's frames are called wrapper
    fault = provoke(
        cluster,
        "if rank != 1:\n    dist.new_group(\n        [0, 1, 2, 3], use_local_synchronization=True)",
    )
    assert type(fault) is Hang
    has_line(fault, "ranks 0, 2, 3 wait in new_group at line 2 of this cell: dist.new_group(")
    assert_healthy(cluster)


def test_a_function_without_a_file_has_a_place_all_the_same(cluster):
    namespace = {}
    exec(
        "def lonely():\n    import torch.distributed as dist\n    if dist.get_rank():\n       "
        " dist.barrier()",
        namespace,
    )
    with pytest.raises(Hang) as caught:
        cluster.run(namespace["lonely"], patience_s=1)
    has_line(caught.value, "ranks 1-3 wait in barrier at line 4, in lonely")
    assert_healthy(cluster)


@pytest.mark.parametrize(
    "code, line",
    [
        ("\n\nx = 1\n1 / 0  # here", 5),
        ("x = 1\r\n\r\n1 / 0  # here\r\n", 4),
        ("%%time\n\nx = 1\n1 / 0  # here", 5),
        ("%%capture\n\n1 / 0  # here", 4),
        ("\ng = lambda: 1 / 0  # here\n\ng()", 3),
        ("\nexec('x = 1\\n1 / 0')  # here", 3),
        ("\ndef wrap(f):\n    return f\n\n@wrap\ndef g():\n    1 / 0  # here\n\ng()", 8),
    ],
    ids=["empty lines", "Windows", "time", "capture", "lambda", "exec", "decorated"],
)
def test_the_line_is_the_one_in_the_cell(cluster, code, line):
    with pytest.raises(RankError) as caught:
        cluster.px(code, first_line=2)
    row = caught.value.text.splitlines()[1]
    assert re.fullmatch(
        rf"  ranks 0-3  raised ZeroDivisionError: division by zero at line {line} of this cell: .*#"
        r" here",
        row,
    ), caught.value.text


def test_what_a_shell_command_prints_is_shown(cluster, capsys):
    cluster.px("!echo hello; printf 'half\\rwhole\\n'", ranks=[0, 1])
    assert capsys.readouterr().out == "".join(
        f"[rank {rank}] hello\n[rank {rank}] whole\n" for rank in (0, 1)
    )


def test_await_in_a_cell(cluster, capsys):
    cluster.px("import asyncio\nlock = asyncio.Lock()\nawait asyncio.sleep(0)")
    cluster.px(
        "async with lock:\n    both = await asyncio.gather(asyncio.sleep(0, rank), asyncio.sleep(0,"
        " 7))\nboth",
        ranks=[1],
    )
    assert capsys.readouterr().out == "[rank 1] Out: [1, 7]\n"
    with pytest.raises(RankError) as caught:
        cluster.px("\nasync def f():\n    await asyncio.sleep(0)\n    1 / 0\n\nawait f()")
    has_line(caught.value, "at line 4 of this cell: 1 / 0")
    has_line(caught.value, "called from line 6 of this cell: await f()")


def test_a_cell_that_awaits_is_told_of_and_stopped(cluster, tmp_path):
    press_stop_when(*(tmp_path / str(rank) for rank in range(4)))
    fault = provoke(
        cluster,
        f"import asyncio\nasync def f():\n    try:\n        open('{tmp_path}/' + str(rank), "
        "'w').close()\n        await asyncio.sleep(60)\n    finally:\n        ended = True\n     "
        "   globals().update(ended=ended)\nawait f()",
    )
    assert type(fault) is Interrupted
    assert cluster.pull("ended") == [True] * 4, (
        "what the cell has to tidy up is done, and not left for the next"
    )
    fault = provoke(
        cluster, "import asyncio\nif rank == 0:\n    await asyncio.sleep(60)", limit_s=1
    )
    has_line(fault, "rank 0 computes at line 3 of this cell: await asyncio.sleep(60)")
    assert_healthy(cluster)


def test_a_collective_that_was_left_under_way_is_told(cluster):
    fault = provoke(
        cluster,
        "if rank != 3:\n    work = dist.all_reduce(torch.ones(3), async_op=True)\nif rank == 0:\n  "
        "  dist.recv(torch.ones(1), 1)",
    )
    assert type(fault) is Hang and fault.culprits == [1]
    has_line(
        fault,
        "Started and never finished: all_reduce at line 2 of this cell, by ranks 0-2 and not by "
        "rank 3.",
    )
    assert_healthy(cluster)


TASKS = """import json, os
def become(index, kind="worker", **others):
    cluster = {"worker": ADDRESSES[:2], **others}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
rank = int(os.environ["RANK"])
import numpy as np, tensorflow as tf, tf_keras
"""
MODEL = """strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
    model.compile("sgd", "mse")"""


def test_what_waits_in_tensorflow_is_told_with_its_line_and_the_task_that_is_missing():
    """A rank that waits in the constructor of a strategy holds Python's lock, and cannot report."""
    with Cluster(nodes=1, ranks_per_node=2, framework="tensorflow", name="tasks") as tasks:
        with reserve(3) as ports:
            addresses = [f"127.0.0.1:{port}" for port in ports.ports]
        tasks.px(f"ADDRESSES = {addresses}\n{TASKS}", setup=True, limit_s=200)
        tasks.px(f"become(rank)\n{MODEL}")
        fault = provoke(
            tasks,
            "if rank == 0:\n    model.fit(np.ones((8, 2)), np.ones((8, 1)), verbose=0)",
            limit_s=200,
        )
        assert type(fault) is Hang
        has_line(fault, "rank 0 waits in fit at line 2 of this cell: model.fit(")
        has_line(fault, "rank 1 called fit less often than the ranks that wait, or not at all.")
        fault = provoke(
            tasks,
            "become(rank)\nif rank == 0:\n    tf.distribute.MultiWorkerMirroredStrategy()",
            limit_s=200,
            patience_s=2,
        )
        assert type(fault) is Hang
        has_line(
            fault,
            "rank 0 waits in MultiWorkerMirroredStrategy at line 3 of this cell: "
            "tf.distribute.MultiWorkerMirroredStrategy()",
        )
        has_line(fault, f"nothing listens at the address of worker 1 (rank 1, {addresses[1]}).")
        fault = provoke(
            tasks,
            "become(0)\ntf.distribute.MultiWorkerMirroredStrategy()",
            limit_s=200,
            patience_s=2,
        )
        assert (
            type(fault) is RankError
            and " waits in MultiWorkerMirroredStrategy at the same line as rank" in fault.text
        )
        has_line(fault, "ranks 0, 1 have the same task in TF_CONFIG, worker 0.")
        fault = provoke(
            tasks,
            """become(0, "worker" if rank else "chief", worker=ADDRESSES[1:2], chief=ADDRESSES[:1], ps=ADDRESSES[2:])
if rank == 0:
    tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver())""",
            limit_s=200,
            patience_s=2,
        )
        assert type(fault) is Hang
        has_line(fault, "rank 0 waits in ParameterServerStrategy at line 3 of this cell")
        has_line(fault, "no rank has set its own TF_CONFIG to ps 0.")
        fault = provoke(
            tasks,
            f"""become(rank)
{MODEL}
model.fit(np.ones((32, 2)), np.ones((32, 1)), batch_size=4, steps_per_epoch=4 if rank else 6, epochs=2, verbose=0)""",
            limit_s=200,
            patience_s=5,
        )
        assert type(fault) is Mismatch and "MISMATCH" in fault.text
        has_line(
            fault,
            "TensorFlow compares the collectives of the workers, and they differ: it expected ",
        )
