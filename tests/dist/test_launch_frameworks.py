"""Every launcher really runs a script of its framework.

The script shows the rank table, a sum over all ranks, a failing rank, and a hang.
"""

import sys
import time

import pytest
from warm import Warm

import needs
from manyhands.cluster.launch import collect
from manyhands.cluster.launch.run_script import launch

launch_module = sys.modules["manyhands.cluster.launch.run_script"]

TABLE = [
    f"rank {rank} of 4, local {rank % 2} of 2, node {rank // 2} of 2, sum 6\n" for rank in range(4)
]


def need_horovod():
    try:
        import horovod  # noqa: F401
    except ImportError:
        needs.lacking("Horovod", "make lab (builds it once; needs g++)")


TORCHRUN = """
    import os, sys
    import torch, torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if sys.argv[1:] == ["fail"] and rank == 2:
        raise ValueError("rank 2 read a bad sample")  # not just after a collective: PyTorch may abort then
    total = torch.tensor([rank])
    dist.all_reduce(total)
    e = os.environ
    print(f"rank {rank} of {dist.get_world_size()}, local {e['LOCAL_RANK']} of {e['LOCAL_WORLD_SIZE']},"
          f" node {e['GROUP_RANK']} of {e['GROUP_WORLD_SIZE']}, sum {total.item()}")
    if rank != 2 or sys.argv[1:] != ["skip"]:
        dist.barrier()
    dist.destroy_process_group()
"""


def test_torchrun_on_two_nodes(script):
    result = launch(script(TORCHRUN), with_="torchrun", nodes=2, ranks_per_node=2, echo=False)
    assert result.returncode == 0, result.launcher_output
    assert list(result.output.values()) == TABLE


def test_torchrun_reports_the_rank_that_failed(script, warm):
    result = launch(
        script(TORCHRUN),
        "fail",
        with_="torchrun",
        nodes=2,
        ranks_per_node=2,
        python=warm,
        echo=False,
    )
    assert result.first_failed == 2 and result.returncodes[2] == 1 and result.returncode == 1, (
        result.output[2]
    )
    assert 'File "train.py", line 8, in <module>' in result.output[2]
    assert "ValueError: rank 2 read a bad sample" in result.output[2]
    assert "ChildFailedError" in result.launcher_output


@pytest.fixture
def soon(monkeypatch):
    """Time is up 2 s after all ranks have printed "ready", however long they took to start."""

    class Soon(collect.Collector):
        def _hear_output(self, connection, rank):
            super()._hear_output(connection, rank)
            if self._phase == "running" and all(b"ready" in state.text for state in self.states):
                self._time_out = self._deadline = min(self._deadline, time.monotonic() + 2)

    monkeypatch.setattr(launch_module, "Collector", Soon)


def test_torchrun_that_hangs_says_where_each_rank_stood(script, soon, warm):
    path = script("""
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        print("ready")
        if dist.get_rank() != 1:
            dist.barrier()
        else:
            dist.recv(torch.zeros(1), src=0)
    """)
    result = launch(path, with_="torchrun", nodes=2, ranks_per_node=2, python=warm, echo=False)
    assert result.timed_out and set(result.returncodes.values()) == {124}
    barrier = "was at train.py line 6, in <module>: dist.barrier()"
    assert result.where == {
        0: barrier,
        1: "was at train.py line 8, in <module>: dist.recv(torch.zeros(1), src=0)",
        2: barrier,
        3: barrier,
    }


MPI = """
    import sys
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    local = world.Split_type(MPI.COMM_TYPE_SHARED)
    heads = world.Split(0 if local.rank == 0 else MPI.UNDEFINED)
    nodes = local.bcast(heads.size if heads else None)
    node = local.bcast(heads.rank if heads else None)
    print(f"rank {world.rank} of {world.size}, local {local.rank} of {local.size}, node {node} of {nodes},"
          f" sum {world.allreduce(world.rank)}")
    if sys.argv[1:] == ["abort"] and world.rank == 3:
        MPI.COMM_WORLD.Abort(9)
    world.barrier()
"""


def test_mpirun_on_two_nodes(script):
    result = launch(script(MPI), with_="mpirun", nodes=2, ranks_per_node=2, echo=False)
    assert result.returncode == 0, result.launcher_output
    assert list(result.output.values()) == TABLE


def test_mpirun_ends_all_ranks_when_one_aborts(script):
    result = launch(
        script(MPI), "abort", with_="mpirun", nodes=2, ranks_per_node=2, echo=False, timeout_s=30
    )
    # the launcher tells 9; each process was killed by it
    assert result.returncode == 9 and not result.timed_out
    assert 0 not in result.returncodes.values()
    assert "MPI_Abort(MPI_COMM_WORLD, 9) - process 3" in result.output[3]


HOROVOD = """
    import torch, horovod.torch as hvd

    hvd.init()
    total = hvd.allreduce(torch.tensor([hvd.rank()]), op=hvd.Sum).item()
    print(f"rank {hvd.rank()} of {hvd.size()}, local {hvd.local_rank()} of {hvd.local_size()},"
          f" node {hvd.cross_rank()} of {hvd.cross_size()}, sum {total}")
    if hvd.rank() == FAILING:
        raise SystemExit(4)
    hvd.shutdown()
"""


@pytest.mark.parametrize("with_", ["horovodrun", "mpirun"])
def test_horovod_on_two_nodes(script, with_):
    need_horovod()
    result = launch(
        script(HOROVOD.replace("FAILING", "-1")), with_=with_, nodes=2, ranks_per_node=2, echo=False
    )
    assert result.returncode == 0, result.launcher_output
    assert list(result.output.values()) == TABLE


def test_horovodrun_reports_the_rank_that_failed(script):
    need_horovod()
    result = launch(
        script(HOROVOD.replace("FAILING", "1")),
        with_="horovodrun",
        nodes=1,
        ranks_per_node=2,
        echo=False,
    )
    assert result.returncode == 4 and result.first_failed == 1 and result.returncodes[1] == 4


@pytest.fixture(scope="module")
def warm_tf():
    """The path of a Python that starts with TensorFlow imported."""
    program = Warm(
        "tensorflow",
        "tf_keras",
        "tensorflow.python.distribute.distribute_lib",
        env={"TF_USE_LEGACY_KERAS": 1},
    )
    yield str(program.python)
    program.close()


TENSORFLOW = """
    import json, os
    import numpy, tensorflow as tf, tf_keras

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,), kernel_initializer="zeros")])
        model.compile(tf_keras.optimizers.SGD(0.5), "mse")
    x = numpy.arange(16, dtype="float32").reshape(8, 2) / 16
    y = x.sum(axis=1, keepdims=True)
    model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), epochs=3, verbose=0)
    print(strategy.num_replicas_in_sync, [round(float(w), 3) for w in model.get_weights()[0].ravel()])
"""


def test_tf_config_runs_multi_worker_mirrored_strategy(script, warm_tf):
    env = {"TF_USE_LEGACY_KERAS": 1}
    both = launch(script(TENSORFLOW), with_="tf_config", tasks={"worker": 2}, env=env, echo=False)
    assert both.returncode == 0, both.output[0]
    alone = launch(
        script(TENSORFLOW),
        with_="tf_config",
        tasks={"worker": 1},
        env=env,
        python=warm_tf,
        echo=False,
    )
    assert both.output[0] == both.output[1]
    # two half batches learn what one whole batch does
    assert both.output[0] == alone.output[0].replace("1 [", "2 [", 1)


PARAMETER_SERVER = """
    import json, os
    import tensorflow as tf

    task = json.loads(os.environ["TF_CONFIG"])["task"]
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if task["type"] != "chief":
        print("serves")
        tf.distribute.Server(resolver.cluster_spec(), job_name=task["type"], task_index=task["index"], protocol="grpc").join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        steps = tf.Variable(0.0)

    @tf.function
    def add():
        steps.assign_add(1.0)

    for _ in range(4):
        coordinator.schedule(add)
    coordinator.join()
    print("steps", steps.numpy())
"""


def test_tf_config_ends_the_servers_when_the_chief_has_ended(script, warm_tf):
    result = launch(
        script(PARAMETER_SERVER),
        with_="tf_config",
        tasks={"worker": 1, "ps": 1, "chief": 1},
        python=warm_tf,
        echo=False,
    )
    assert result.names == ["chief 0", "worker 0", "ps 0"] and result.servers == [1, 2]
    assert result.returncode == 0 and result.returncodes[0] == 0
    assert result.output == {0: "steps 4.0\n", 1: "serves\n", 2: "serves\n"}
