"""What to run for each launcher.

That is the command lines, their environment, and how a rank finds out its number.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from manyhands.cluster.host.gpu_assignment import gpu_ids
from manyhands.cluster.host.name_service import without_warnings
from manyhands.cluster.host.ports import reserve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, TypeAlias

    from manyhands.cluster.host.ports import Reservation
    from manyhands.cluster.payloads import Command

    Launcher: TypeAlias = Literal["torchrun", "horovodrun", "mpirun", "tf_config"]

GUARD = str(Path(__file__).with_name("process_guard.py"))
# the guard's folder is not on its path of modules
SAFELY = ["-s", "-P"] if sys.version_info >= (3, 11) else ["-s"]

# What another launch, a cluster or a batch system has left in this environment would mislead the
# new ranks.
_FOREIGN = ("HOROVOD_", "PMI_", "PMIX_", "MPI_LOCAL", "HYDRA_", "OMPI_", "SLURM_", "TORCHELASTIC_")
_FOREIGN_NAMES = {
    *(
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "GROUP_WORLD_SIZE",
        "ROLE_RANK",
    ),
    *("ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "MANYHANDS_TASK"),
    *("FORCE_COLOR", "CLICOLOR_FORCE"),  # Jupyter's, for programs that write into cells
}
# Few threads per rank; TensorFlow silent below an error, and with the same rounding on every
# machine.
_DEFAULTS = {
    "OMP_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "GRPC_VERBOSITY": "ERROR",
}
_TASK_ORDER = ("chief", "worker", "ps")


class LaunchError(RuntimeError):
    """The launch cannot be tried at all; the message says what is missing and what to do."""


@dataclass
class Job:
    """One launch: `commands` for the guard, the name of each rank, and the ports that it holds."""

    commands: list[Command]
    rank_variable: str
    ranks_per_node: int
    names: list[str]
    reservation: Reservation | None = None
    # ranks that serve until the others have ended
    servers: frozenset[int] = field(default_factory=frozenset)
    folder: str = ""

    def close(self) -> None:
        """Let go of the ports that were reserved for this launch."""
        if self.reservation:
            self.reservation.close()


def base_env(env: Mapping[str, Any] | None) -> dict[str, str]:
    """This process's environment for a launch, then the caller's `env`.

    It is without what belongs to another launch, and with few threads per rank.
    """
    clean = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(_FOREIGN) and k not in _FOREIGN_NAMES
    }
    if clean.get("MPLBACKEND", "").startswith("module://"):
        del clean["MPLBACKEND"]  # Jupyter's, which shows figures in cells
    for name, value in {**_DEFAULTS, **without_warnings()}.items():
        clean.setdefault(name, value)
    # all ranks are on this machine, whose name may not resolve
    if os.path.exists("/sys/class/net/lo"):
        clean.setdefault("GLOO_SOCKET_IFNAME", "lo")
    clean.update(PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1")
    clean.update({name: str(value) for name, value in (env or {}).items()})
    return clean


def make_job(
    with_: Launcher,
    folder: str,
    script: str,
    args: Sequence[Any],
    nodes: int,
    ranks_per_node: int,
    tasks: dict[str, int] | None,
    env: Mapping[str, Any] | None,
    python: str,
) -> Job:
    """The `Job` that runs `script` under the launcher `with_`."""
    around = [python, *SAFELY, GUARD, "rank", folder, python, script, *map(str, args)]
    env = base_env(env)
    if with_ == "tf_config":
        return _tf_config(around, tasks or {"worker": nodes * ranks_per_node}, env)
    makers = {"torchrun": _torchrun, "mpirun": _mpirun, "horovodrun": _horovodrun}
    return makers[with_](around, nodes, ranks_per_node, env, python)


LAUNCHERS = ("torchrun", "horovodrun", "mpirun", "tf_config")


def _rank_names(nodes: int, ranks_per_node: int) -> list[str]:
    return [f"rank {rank}" for rank in range(nodes * ranks_per_node)]


def _torchrun(
    around: list[str], nodes: int, ranks_per_node: int, env: dict[str, str], python: str
) -> Job:
    """torchrun once per node, as one types it on each host.

    Static rendezvous: the numbers of nodes and ranks are ours.
    """
    reservation = reserve(1)
    common = [
        python,
        "-m",
        "torch.distributed.run",
        f"--nnodes={nodes}",
        f"--nproc-per-node={ranks_per_node}",
    ]
    common += [
        "--master-addr=127.0.0.1",
        f"--master-port={reservation.ports[0]}",
        "--max-restarts=0",
        "--no-python",
    ]
    commands: list[Command] = [
        {"argv": [*common, f"--node-rank={node}", *around], "env": env} for node in range(nodes)
    ]
    return Job(commands, "RANK", ranks_per_node, _rank_names(nodes, ranks_per_node), reservation)


def _mpirun(
    around: list[str], nodes: int, ranks_per_node: int, env: dict[str, str], python: str
) -> Job:
    """mpiexec with as many host names as nodes, all started here by fork.

    MPI itself then sees that many nodes.
    """
    hosts = ",".join(f"node{node}:{ranks_per_node}" for node in range(nodes))
    argv = [
        mpiexec(python),
        "-launcher",
        "fork",
        "-rmk",
        "user",
        "-hosts",
        hosts,
        "-n",
        str(nodes * ranks_per_node),
        *around,
    ]
    return Job(
        [{"argv": argv, "env": env}], "PMI_RANK", ranks_per_node, _rank_names(nodes, ranks_per_node)
    )


def mpiexec(python: str = sys.executable) -> str:
    """The path of MPICH's mpiexec.

    It is beside `python`, where the mpich wheel puts it, else on the path.
    """
    beside = Path(python).with_name("mpiexec.hydra")
    path = str(beside) if beside.exists() else shutil.which("mpiexec.hydra")
    if not path:
        raise LaunchError(
            "MPICH's mpiexec.hydra is missing. `pip install mpich mpi4py` installs it, without a "
            "system package. A different MPI does not work."
        )
    return path


def _horovodrun(
    around: list[str], nodes: int, ranks_per_node: int, env: dict[str, str], python: str
) -> Job:
    """horovodrun with as many names of this host as nodes.

    It starts ranks by ssh elsewhere, and here by itself.
    """
    program = Path(python).with_name("horovodrun")
    if not program.exists() or importlib.util.find_spec("horovod") is None:
        raise LaunchError(
            "Horovod is not installed: `make lab` builds it (needs g++; "
            "`manyhands doctor` says what is missing)."
        )
    # 127.0.0.1, 127.0.0.01, 127.0.0.001 ... are one address and, for Horovod, different hosts: no
    # other name is local everywhere
    hosts = ",".join(f"127.0.0.{'0' * node}1:{ranks_per_node}" for node in range(nodes))
    # for each other: on a busy machine some import their framework much later; Horovod's own 30 s
    # are too few
    timeout = ["--gloo-timeout-seconds", "120"]
    argv = [
        str(program),
        "-np",
        str(nodes * ranks_per_node),
        "--gloo",
        *timeout,
        "-H",
        hosts,
        *around,
    ]
    return Job(
        [{"argv": argv, "env": env}],
        "HOROVOD_RANK",
        ranks_per_node,
        _rank_names(nodes, ranks_per_node),
    )


def _tf_config(around: list[str], tasks: dict[str, int], env: dict[str, str]) -> Job:
    """One process per task, each with the whole layout and its own place in it.

    No launcher is in between.
    """
    unknown = set(tasks) - set(_TASK_ORDER)
    if (
        unknown
        or tasks.get("chief", 0) > 1
        or not all(isinstance(n, int) and n > 0 for n in tasks.values())
    ):
        raise ValueError(
            f"tasks={tasks}: give the number of each kind, as in {{'chief': 1, 'worker': 2, 'ps': "
            "1}, at most one chief."
        )
    order = [(kind, index) for kind in _TASK_ORDER for index in range(tasks.get(kind, 0))]
    reservation = reserve(len(order))
    layout: dict[str, list[str]] = {}
    for (kind, _), port in zip(order, reservation.ports, strict=True):
        layout.setdefault(kind, []).append(f"127.0.0.1:{port}")
    commands: list[Command] = []
    for rank, (kind, index) in enumerate(order):
        config = {"cluster": layout, "task": {"type": kind, "index": index}}
        commands.append(
            {
                "argv": around,
                "env": {**env, "TF_CONFIG": json.dumps(config), "MANYHANDS_TASK": str(rank)},
            }
        )
    names = [f"{kind} {index}" for kind, index in order]
    servers = (
        frozenset(r for r, (kind, _) in enumerate(order) if kind != "chief")
        if {"chief", "ps"} <= set(tasks)
        else frozenset()
    )
    return Job(commands, "MANYHANDS_TASK", 1, names, reservation, servers)


def gpus_by_node(nodes: int) -> list[str]:
    """One CUDA_VISIBLE_DEVICES per node, with this machine's GPUs distributed in order.

    [] where there is no GPU.
    """
    gpus = gpu_ids()
    if len(gpus) < nodes:
        return [gpus[node % len(gpus)] for node in range(nodes)] if gpus else []
    share = len(gpus) // nodes
    return [",".join(gpus[node * share : (node + 1) * share]) for node in range(nodes)]
