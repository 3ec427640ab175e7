"""What communication costs, from two numbers of a link.

The time of a message of n bytes is latency_s + n / bytes_per_s.

    link = fit(n_bytes, times_s)          # from measured messages
    ring_s(64, 100e6, *link)              # an all-reduce of 100 MB on 64 ranks, predicted

And a whole training step on a machine of which only published numbers are known: `training_step`,
docs/SIMULATE.md.

Numpy only, and no randomness that is not seeded: the same measurements give the same predictions
everywhere.
"""

from manyhands.simulate.calibrate import calibrate
from manyhands.simulate.collective_costs import (
    PATTERNS,
    chain_s,
    crossover_bytes,
    double_tree_s,
    halving_doubling_s,
    hierarchical_s,
    in_network_s,
    message_s,
    node_ring_s,
    parameter_server_s,
    pattern_s,
    ring_s,
    rounds,
    sent_bytes,
    tree_s,
)
from manyhands.simulate.fit import Link, bootstrap, fit, interval
from manyhands.simulate.fusion import buckets, finish_s, resnet50_bytes

__all__ = [
    "PATTERNS",
    "Link",
    "bootstrap",
    "buckets",
    "calibrate",
    "chain_s",
    "crossover_bytes",
    "double_tree_s",
    "finish_s",
    "fit",
    "halving_doubling_s",
    "hierarchical_s",
    "in_network_s",
    "interval",
    "message_s",
    "node_ring_s",
    "parameter_server_s",
    "pattern_s",
    "resnet50_bytes",
    "ring_s",
    "rounds",
    "sent_bytes",
    "tree_s",
]
