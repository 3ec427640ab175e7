"""A column of a matrix is broadcast. expect: fails 9, ranks 2"""
import torch
import torch.distributed as dist

dist.init_process_group("gloo")

matrix = torch.ones(4, 4)

dist.broadcast(matrix[:, 0], 0)
dist.destroy_process_group()
