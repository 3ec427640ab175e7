"""ZeRO stage 2: a rank keeps the optimiser's state of its own part of the weights, and only that part's gradient."""

import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


class ZeroOptimizer:
    """Flat weights and gradients in partitions of one size, one for each rank of the group."""

    def __init__(self, init_optimizer, dp_process_group=None, clip_grad=0.0):
        self.optimizer, self.group, self.clip_grad = init_optimizer, dp_process_group, clip_grad
        self.rank, self.partition_count = dist.get_rank(dp_process_group), dist.get_world_size(dp_process_group)
        self.flat_groups, self.partitions, self.params = [], [], []
        for group in self.optimizer.param_groups:
            params = [p for p in group["params"] if p.requires_grad]
            size = sum(p.numel() for p in params)
            padded = size + -size % self.partition_count
            flat = torch.zeros(padded, device=params[0].device)
            flat[:size] = torch.cat([p.detach().reshape(-1) for p in params])
            for p, view in zip(params, flat[:size].split([p.numel() for p in params])):
                p.data = view.view_as(p)  # the model's weights are views of the flat ones from now on
            partition = flat.chunk(self.partition_count)[self.rank].clone().requires_grad_(True)
            self.flat_groups.append(flat)
            self.partitions.append(partition)
            self.params.append(params)
            group["params"] = [partition]

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def zero_grad(self, set_to_none=True):
        for p in (p for params in self.params for p in params):
            p.grad = None
        self.optimizer.zero_grad(set_to_none)

    def reduce_gradients(self):
        """Leaves the mean over the ranks of this rank's partition of the gradient."""
        for params, flat, partition in zip(self.params, self.flat_groups, self.partitions):
            bucket = torch.zeros_like(flat)
            grads = torch.cat([p.grad.reshape(-1) for p in params])
            bucket[:grads.numel()] = grads
            bucket.div_(self.partition_count)
            averaged = torch.empty_like(partition)
            dist.reduce_scatter_tensor(averaged, bucket, group=self.group)
            partition.grad = averaged

    def scaled_global_norm(self):
        total = sum(partition.grad.pow(2).sum() for partition in self.partitions)
        dist.all_reduce(total, group=self.group)
        return total.sqrt()

    def step(self):
        self.reduce_gradients()
        if self.clip_grad > 0:
            clip = self.scaled_global_norm() / self.clip_grad
            for partition in self.partitions:
                partition.grad.div_(clip.clamp(min=1.0))
        self.optimizer.step()
        self._update_weights()

    @torch.no_grad()
    def _update_weights(self):
        for flat, partition in zip(self.flat_groups, self.partitions):
            dist.all_gather_into_tensor(flat, partition.detach(), group=self.group)

    def state_dict(self):
        return {"zero_stage": 2, "partition_count": self.partition_count, "optimizer": self.optimizer.state_dict()}


class Engine(torch.nn.Module):
    """The model, its optimiser and its loader; accumulates over micro-batches."""

    def __init__(self, model, optimizer, training_data, config):
        super().__init__()
        self.device = torch.device("cuda", config["local_rank"])
        self.module = model.to(self.device)
        self._broadcast_model()
        self.optimizer = ZeroOptimizer(optimizer(self.module.parameters()), clip_grad=config["gradient_clipping"])
        self.gradient_accumulation_steps = config["gradient_accumulation_steps"]
        self.micro_steps = 0
        sampler = DistributedSampler(training_data, num_replicas=dist.get_world_size(), rank=dist.get_rank())
        self.loader = DataLoader(training_data, config["train_micro_batch_size_per_gpu"], sampler=sampler,
                                 pin_memory=True, drop_last=True)

    def _broadcast_model(self):
        for p in [*self.module.parameters(), *self.module.buffers()]:
            dist.broadcast(p.data, 0)

    def forward(self, *inputs):
        return self.module(*inputs)

    def is_gradient_accumulation_boundary(self):
        return (self.micro_steps + 1) % self.gradient_accumulation_steps == 0

    def backward(self, loss):
        (loss / self.gradient_accumulation_steps).backward()
        return loss

    def step(self):
        if self.is_gradient_accumulation_boundary():
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.micro_steps += 1

    def save_checkpoint(self, folder, tag):
        """Each rank writes its part of the optimiser's state, rank 0 the weights as well."""
        os.makedirs(os.path.join(folder, tag), exist_ok=True)
        if dist.get_rank() == 0:
            torch.save(self.module.state_dict(), os.path.join(folder, tag, "mp_rank_00_model_states.pt"))
        torch.save(self.optimizer.state_dict(),
                   os.path.join(folder, tag, f"zero_pp_rank_{dist.get_rank()}_optim_states.pt"))
        dist.barrier()


def initialize(model, optimizer, training_data, config):
    engine = Engine(model, optimizer, training_data, config)
    return engine, engine.optimizer, engine.loader
