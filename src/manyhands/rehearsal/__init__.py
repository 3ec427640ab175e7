"""A dress rehearsal for GPUs, on a CPU: what NCCL would do with the calls that gloo got.

    traces = {rank: [Event, ...], ...}      # what each rank asked of torch.distributed
    for finding in judge(traces):
        print(finding)

`trace` is the record of the calls, `replay` puts them through NCCL's queues, `rules` says what
hangs, fails or differs, and `nccl_first_send`, `nccl_mismatches` and `nccl_refusals` have NCCL's
rules. All of these are plain Python: they need neither a GPU nor torch nor processes.
`trace_recorder` makes the traces on the ranks, for cells of a cluster (`cells`) or a script
(`rehearse_command`, `on_rank_of_script`); `rehearsal_report` has the sentences.

Nothing here has been compared with a run on several GPUs. What NCCL does is taken from the sources
of PyTorch 2.13 and NCCL 2.30, from their documentation, and from reports of hangs; `rules` and the
three files of NCCL's rules name them. PyTorch 2.15 puts a new implementation behind "nccl"
(`ProcessGroupNCCL2`), with which nothing here has been compared.
"""

from manyhands.rehearsal.replay import Replay
from manyhands.rehearsal.rules import Finding, judge
from manyhands.rehearsal.trace import Event, Layout, Part, dump, load

__all__ = ["Event", "Finding", "Layout", "Part", "Replay", "dump", "judge", "load"]
