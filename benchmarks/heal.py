"""Seconds to heal after a gloo deadlock, against `restart_engines` of plain ipyparallel.

The latter includes waiting for the engines.
"""

import statistics

from . import few
from .pairs import alternate, in_fresh_process, ratio_line

RANKS = few(4, 2)
OURS = (
    f"RANKS = {RANKS}"
    + """
import json
from manyhands import Cluster
from manyhands.cluster import Hang
cluster = Cluster(nodes=1, ranks_per_node=RANKS, framework="torch")
cluster.px("import torch, torch.distributed as dist; dist.init_process_group('gloo'); dist.barrier()")
try:
    cluster.px("if dist.get_rank() != 1:\\n    dist.barrier()", patience_s=1)
except Hang as hang:
    seconds = hang.healed_s
cluster.px("import torch, torch.distributed as dist; dist.init_process_group('gloo'); dist.barrier()")
print(json.dumps(seconds))
cluster.stop()
"""
)
PLAIN = (
    f"RANKS = {RANKS}"
    + """
import json, logging, time
import ipyparallel as ipp
cluster = ipp.Cluster(n=RANKS, log_level=logging.ERROR)
client = cluster.start_and_connect_sync()
client[:].execute("import torch", block=True)
start = time.perf_counter()
cluster.restart_engines_sync()
client.wait_for_engines(RANKS, timeout=120)
seconds = time.perf_counter() - start
print(json.dumps(seconds))
client.close()
cluster.stop_cluster_sync()
"""
)


def main(times=few(3)):
    """Measure both in turn, and give the lines of the table."""
    ours, plain = alternate(lambda: in_fresh_process(OURS), lambda: in_fresh_process(PLAIN), times)
    yield ratio_line(
        "healed after a gloo deadlock, torch loaded (peer: restart_engines + wait, without torch)",
        ours,
        plain,
        "s",
        0.25,
    )
    middle = statistics.median(ours)
    reached = "reached" if middle <= 2 else "MISSED"
    yield (
        f"| the same, in seconds | {middle:.2f} s ({min(ours):.2f}-{max(ours):.2f}) | | | 2 s | "
        f"{reached} |"
    )
