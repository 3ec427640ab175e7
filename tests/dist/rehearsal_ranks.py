"""The ranks of a recorded program, forked from a process that has torch.

Otherwise they are as in `manyhands.rehearsal.on_rank_of_script`.

That process is started for nothing else and has no threads of its own, as a test's process has.
"""

import faulthandler
import functools
import os
import runpy

import torch
from torch.distributed import distributed_c10d as c10d

from manyhands.rehearsal.trace import dump
from manyhands.rehearsal.trace_recorder import Recorder

IMPORTED_BEFORE = [  # what the recorder and the programs import
    "manyhands.rehearsal.trace_recorder",
    "torch._dynamo",
    "torch._prims_common",
    "torch.distributed.fsdp",
    "torch.distributed.optim",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
    "torch.utils._python_dispatch",
]


def play(program, folder, rank, ranks, limit_s):
    """One rank; after `limit_s` it says in FOLDER/RANK.stacks where its threads are."""
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1"
    )
    torch.set_num_threads(1)
    meet(folder, rank, ranks)
    with (
        open(folder / f"{rank}.trace", "w", buffering=1) as trace,
        open(folder / f"{rank}.stacks", "w") as stacks,
    ):
        faulthandler.dump_traceback_later(limit_s, file=stacks)
        recorder = Recorder(heard=lambda event: trace.write(dump([event])))
        recorder.start()
        namespace = runpy.run_path(str(program), run_name="__main__")  # noqa: F841 (why: see on_rank_of_script)
        recorder.stop()
        faulthandler.cancel_dump_traceback_later()
    (folder / f"{rank}.end").touch()
    os._exit(0)


def meet(folder, rank, ranks):
    """`init_process_group` finds the others by a file instead of a port."""
    c10d.init_process_group = functools.wraps(c10d.init_process_group)(
        functools.partial(
            c10d.init_process_group,
            init_method=f"file://{folder}/meeting",
            rank=rank,
            world_size=ranks,
        )
    )
    torch.distributed.init_process_group = c10d.init_process_group
