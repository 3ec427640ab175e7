"""Two stages with torch.distributed.pipelining, 1F1B. expect: nothing, ranks 2"""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

dist.init_process_group("gloo")
rank = dist.get_rank()
layer = torch.nn.Linear(4, 4)
stage = PipelineStage(layer, rank, 2, torch.device("cpu"))
schedule = Schedule1F1B(
    stage, n_microbatches=2, loss_fn=lambda out, wanted: (out - wanted).square().mean()
)
rows = torch.ones(4, 4)
if rank == 0:
    schedule.step(rows)
else:
    schedule.step(target=rows)
dist.destroy_process_group()
