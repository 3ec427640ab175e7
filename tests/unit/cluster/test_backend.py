"""Which backend the ranks get, where real nodes choose by their own GPUs.

Also how long they may wait with it.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from manyhands.checks import on_ranks
from manyhands.cluster import cluster as of_cluster
from manyhands.cluster.cluster import Cluster
from manyhands.cluster.engines.reach import StartLimit
from manyhands.cluster.engines.runtime import Runtime
from manyhands.shared.default_timeouts import HANG_TIMEOUT_S

GPU = {"MANYHANDS_BACKEND": "nccl", "MANYHANDS_DEVICE": "cuda:0", "CUDA_VISIBLE_DEVICES": "3"}
CPU = {"MANYHANDS_BACKEND": "gloo", "MANYHANDS_DEVICE": "cpu"}


def started(here, nodes, monkeypatch):
    """Start a runtime twice whose two ranks live on `nodes`, seen from a notebook on `here`.

    Returns (the runtime, the environments that the ranks are given).
    """
    runtime, received = Runtime.__new__(Runtime), []
    runtime.cluster = SimpleNamespace(world_size=2, nodes=2, ranks_per_node=1, threads_per_rank=1)
    runtime.backend, runtime._devices = (
        here["MANYHANDS_BACKEND"],
        [{name: here[name] for name in here if name != "MANYHANDS_BACKEND"}] * 2,
    )
    runtime.folder, runtime._port, runtime._client = "/nowhere", None, None
    runtime.reports = SimpleNamespace(url="", token="")
    runtime._engines = SimpleNamespace(
        start=lambda client, environments, limit: {0: 0, 1: 1},
        report_ip="192.0.2.1",
        environment_of=lambda rank, environment: {**environment, **nodes[rank]},
    )

    def submit(self, ranks, join, arguments):
        rank, _url, _token, _folder, environment, _path = arguments
        received.append(environment)
        return {rank: SimpleNamespace(get=lambda timeout: {})}

    monkeypatch.setattr(Runtime, "submit", submit)
    runtime._start_ranks(StartLimit())
    runtime._start_ranks(StartLimit())
    runtime._port.close()
    return runtime, received[2:]


@pytest.mark.parametrize(
    "here, nodes, backend, devices",
    [
        (CPU, [GPU, GPU], "nccl", ["cuda:0", "cuda:0"]),
        (GPU, [CPU, CPU], "gloo", ["cpu", "cpu"]),
        (CPU, [GPU, CPU], "gloo", ["cuda:0", "cpu"]),
        (GPU, [{}, {}], "nccl", ["cuda:0", "cuda:0"]),
    ],
)
def test_all_ranks_have_the_backend_that_suits_their_nodes(
    here, nodes, backend, devices, monkeypatch
):
    runtime, received = started(here, nodes, monkeypatch)
    assert [environment["MANYHANDS_BACKEND"] for environment in received] == [
        backend
    ] * 2 and runtime.backend == backend
    assert [ranks[0][1] for _, ranks in runtime.layout()] == devices
    assert received[0]["MASTER_PORT"] == received[1]["MASTER_PORT"] and [
        environment["RANK"] for environment in received
    ] == [
        "0",
        "1",
    ]


class Ready:
    """In the place of a runtime: one whose nodes turn out to have GPUs when they start."""

    def __init__(self, cluster, frameworks):
        self.backend = "gloo"

    def start(self, limit=None):
        self.backend = "nccl"

    def stop(self):
        pass


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(of_cluster, "Runtime", Ready)
    monkeypatch.delenv("MANYHANDS_PATIENCE_S", raising=False)
    monkeypatch.delenv("MANYHANDS_PROFILE", raising=False)

    def make(**options):
        with Cluster(ranks_per_node=1, **options) as cluster:
            return cluster.patience_s

    return make


def test_patience_is_that_of_the_nodes_backend(made, monkeypatch):
    assert made() == HANG_TIMEOUT_S["nccl"] and made(patience_s=4) == 4
    monkeypatch.setenv("MANYHANDS_PATIENCE_S", "60")
    assert made() == 60 and made(patience_s=4) == 4


def test_a_stopped_cluster_has_no_backend_and_says_why(made):
    with Cluster(ranks_per_node=1, name="short") as cluster:
        assert cluster.backend == "nccl"
    assert getattr(cluster, "backend", None) is None
    with pytest.raises(AttributeError, match="The cluster 'short' was stopped"):
        cluster.patience_s  # noqa: B018


@pytest.mark.parametrize("wrong", [{"patience_s": 0}, {"limit_s": -1}])
def test_nothing_has_begun_when_an_argument_is_refused(wrong, made, monkeypatch):
    monkeypatch.setattr(of_cluster, "Runtime", None)
    with pytest.raises(ValueError, match="must be a number above 0"):
        made(**wrong)


@pytest.mark.parametrize("backend, patience_s", [("gloo", 3), ("nccl", 30)])
def test_a_check_over_nccl_waits_for_its_first_calls(backend, patience_s):
    asked = []

    class Asked:
        def run(self, *args, patience_s, limit_s):
            asked.append(patience_s)
            return [{"value": 1}]

        def holding(self, reports):
            return nullcontext()

    cluster = Asked()
    cluster.backend, cluster.patience_s = backend, HANG_TIMEOUT_S[backend]
    assert on_ranks.RankReport("mean", cluster, {"mean": {}}, {}).on_ranks(
        "unit.ranks", "experiment"
    ) == [1]
    assert asked == [patience_s]
