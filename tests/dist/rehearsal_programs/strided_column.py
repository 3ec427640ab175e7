"""A column of a matrix is broadcast. expect: fails 10, ranks 2"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")

matrix = torch.full((4, 4), float(dist.get_rank()))

dist.broadcast(matrix[:, 0], 0)
# gloo sends and fills the first row, as it lies
assert matrix[0].eq(0).all() and matrix[1:].eq(dist.get_rank()).all()
dist.destroy_process_group()
