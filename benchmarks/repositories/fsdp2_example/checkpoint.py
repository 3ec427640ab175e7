"""The whole state dict of a sharded model and its optimiser, gathered by all ranks and written by rank 0."""

import os
import time

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict, get_optimizer_state_dict,
                                                     set_model_state_dict, set_optimizer_state_dict)
from torch.distributed.tensor import DTensor, distribute_tensor

from utils import get_latest_checkpoint_folder

MODEL, OPTIM = "model_state_dict.pt", "optim_state_dict.pt"


class Checkpointer:
    def __init__(self, folder, dcp_api):
        self.folder, self.dcp_api = os.path.join(folder, "dcp_api" if dcp_api else "dtensor_api"), dcp_api
        self.last_training_time = get_latest_checkpoint_folder(self.folder)

    def _read(self, name):
        path = os.path.join(self.folder, str(self.last_training_time), name)
        return torch.load(path, mmap=True, weights_only=True, map_location="cpu")

    def load_model(self, model):
        full = self._read(MODEL)
        if self.dcp_api:
            options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
            set_model_state_dict(model, full, options=options)
            return
        meta = model.state_dict()
        sharded = {name: torch.nn.Parameter(distribute_tensor(tensor, meta[name].device_mesh, meta[name].placements))
                   for name, tensor in full.items()}
        model.load_state_dict(sharded, strict=False, assign=True)

    def load_optim(self, model, optim):
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_optimizer_state_dict(model, optim, optim_state_dict=self._read(OPTIM), options=options)

    def _full_model(self, model):
        if self.dcp_api:
            return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        full = {}
        for name, param in model.state_dict().items():
            tensor = param.full_tensor() if isinstance(param, DTensor) else param
            if dist.get_rank() == 0:
                full[name] = tensor.cpu()
        return full

    def save(self, model, optim):
        states = {MODEL: self._full_model(model), OPTIM: get_optimizer_state_dict(
            model, optim, options=StateDictOptions(full_state_dict=True, cpu_offload=True))}
        if dist.get_rank() == 0:
            folder = os.path.join(self.folder, str(int(time.time() * 1000)))
            os.makedirs(folder, exist_ok=True)
            for name, state in states.items():
                torch.save(state, os.path.join(folder, name))
