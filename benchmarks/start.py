"""From nothing to four ranks that can train, against plain ipyparallel.

torch is loaded and an optimizer made on each (the first one imports a good part of torch). Seconds
and memory are compared with the same on all engines.
"""

from . import few
from .pairs import alternate, in_fresh_process, ratio_line

RANKS = few(4, 2)
MEMORY = """
def memory_mib():
    # what all processes but this one hold; a page that several share is counted once among them (PSS)
    return sum(p.memory_full_info().pss for p in psutil.Process().children(recursive=True)) / 2**20
"""
OPTIMIZER = (
    "import torch, torch.distributed; torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1)"
)
OURS = (
    f"RANKS, OPTIMIZER = {RANKS}, {OPTIMIZER!r}"
    + """
import json, time, psutil
start = time.perf_counter()
from manyhands import Cluster
cluster = Cluster(nodes=1, ranks_per_node=RANKS, framework="torch")
cluster.px(OPTIMIZER)
seconds = time.perf_counter() - start
"""
    + MEMORY
    + """
print(json.dumps([seconds, memory_mib()]))
cluster.stop()
"""
)
PLAIN = (
    f"RANKS, OPTIMIZER = {RANKS}, {OPTIMIZER!r}"
    + """
import json, logging, time, psutil
start = time.perf_counter()
import ipyparallel as ipp
cluster = ipp.Cluster(n=RANKS, log_level=logging.ERROR)
client = cluster.start_and_connect_sync()
client[:].execute(OPTIMIZER, block=True)
seconds = time.perf_counter() - start
"""
    + MEMORY
    + """
print(json.dumps([seconds, memory_mib()]))
client.close()
cluster.stop_cluster_sync()
"""
)


def main(times=few(5)):
    """Measure both in turn, and give the lines of the table."""
    for program in (OURS, PLAIN)[: few(2, 0)]:
        in_fresh_process(program)  # warms the disk's cache
    ours, plain = alternate(lambda: in_fresh_process(OURS), lambda: in_fresh_process(PLAIN), times)
    yield ratio_line(
        "4 ranks ready to train, an optimizer made",
        [s for s, _ in ours],
        [s for s, _ in plain],
        "s",
        0.5,
    )
    yield ratio_line(
        "memory of all their processes", [m for _, m in ours], [m for _, m in plain], "MiB", 0.5
    )
