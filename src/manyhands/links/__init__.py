"""Modules and helpers that span ranks, as ChainerMN has them.

There are chains, recurrent networks, batch normalisation, convolution, optimizer, evaluator and
data.

    from manyhands import comm, links
    c = comm.create_communicator()
    model = links.MultiNodeChainList(c)
    model.add_link(encoder, rank_in=None, rank_out=1)

All of them take their communicator as an argument and are built of `manyhands.functions`: every
gradient is the exact adjoint of the global program, a time-out of the communicator ends what would
hang, and an output that nobody uses stops no other rank.
"""

from manyhands.links.batch_norm import MultiNodeBatchNorm
from manyhands.links.chain_list import MultiNodeChainList
from manyhands.links.dataset import ScatteredDataset, scatter_dataset
from manyhands.links.evaluator import create_multi_node_evaluator
from manyhands.links.n_step_rnn import MultiNodeNStepRNN, create_multi_node_n_step_rnn
from manyhands.links.optimizer import MultiNodeOptimizer, create_multi_node_optimizer
from manyhands.links.parallel_conv import ParallelConv2d

__all__ = [
    "MultiNodeBatchNorm",
    "MultiNodeChainList",
    "MultiNodeNStepRNN",
    "MultiNodeOptimizer",
    "ParallelConv2d",
    "ScatteredDataset",
    "create_multi_node_evaluator",
    "create_multi_node_n_step_rnn",
    "create_multi_node_optimizer",
    "scatter_dataset",
]
