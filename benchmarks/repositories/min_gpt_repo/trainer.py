import os
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


@dataclass
class TrainerConfig:
    max_epochs: int = None
    batch_size: int = None
    data_loader_workers: int = None
    grad_norm_clip: float = None
    snapshot_path: str = None
    save_every: int = None
    use_amp: bool = None


@dataclass
class Snapshot:
    model_state: "OrderedDict[str, torch.Tensor]"
    optimizer_state: dict[str, Any]
    finished_epoch: int


class Trainer:
    def __init__(self, trainer_config, model, optimizer, train_dataset, test_dataset=None):
        self.config = trainer_config
        self.acc = torch.accelerator.current_accelerator()
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.device = torch.device(f"{self.acc}:{self.local_rank}")
        self.train_loader = self._prepare_dataloader(train_dataset)
        self.test_loader = self._prepare_dataloader(test_dataset) if test_dataset else None
        self.epochs_run = 0
        self.model = model.to(self.device)
        self.optimizer = optimizer
        self.save_every = self.config.save_every
        if self.config.use_amp:
            self.scaler = torch.amp.GradScaler(self.acc.type)
        self._load_snapshot()
        self.model = DDP(self.model, device_ids=[self.local_rank])

    def _prepare_dataloader(self, dataset):
        return DataLoader(dataset, batch_size=self.config.batch_size, pin_memory=True, shuffle=False,
                          num_workers=self.config.data_loader_workers, sampler=DistributedSampler(dataset))

    def _load_snapshot(self):
        try:
            snapshot = Snapshot(**torch.load(self.config.snapshot_path, map_location="cpu"))
        except FileNotFoundError:
            print("Snapshot not found. Training model from scratch")
            return
        self.model.load_state_dict(snapshot.model_state)
        self.optimizer.load_state_dict(snapshot.optimizer_state)
        self.epochs_run = snapshot.finished_epoch
        print(f"Resuming training from snapshot at Epoch {self.epochs_run}")

    def _run_batch(self, source, targets, train=True):
        with torch.set_grad_enabled(train), torch.autocast(self.acc.type, torch.float16, enabled=self.config.use_amp):
            _, loss = self.model(source, targets)
        if train:
            self.optimizer.zero_grad(set_to_none=True)
            if self.config.use_amp:
                self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_norm_clip)
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_norm_clip)
                self.optimizer.step()
        return loss.item()

    def _run_epoch(self, epoch, dataloader, train=True):
        if isinstance(dataloader.sampler, DistributedSampler):
            dataloader.sampler.set_epoch(epoch)
        total = torch.zeros(2, device=self.device)
        for i, (source, targets) in enumerate(dataloader):
            step_type = "Train" if train else "Eval"
            source, targets = source.to(self.device), targets.to(self.device)
            batch_loss = self._run_batch(source, targets, train)
            total += torch.tensor([batch_loss, 1.0], device=self.device)
            if i % 100 == 0:
                print(f"[RANK{self.global_rank}] Epoch {epoch} | Iter {i} | {step_type} Loss {batch_loss:.5f}")
        if not train:
            dist.all_reduce(total)
            print(f"[RANK{self.global_rank}] Epoch {epoch} | Eval Loss of all ranks {total[0] / total[1]:.5f}")

    def _save_snapshot(self, epoch):
        model = self.model.module if hasattr(self.model, "module") else self.model
        snapshot = Snapshot(model.state_dict(), self.optimizer.state_dict(), epoch)
        torch.save(asdict(snapshot), self.config.snapshot_path)
        print(f"Snapshot saved at epoch {epoch}")

    def train(self):
        for epoch in range(self.epochs_run, self.config.max_epochs):
            epoch += 1
            self._run_epoch(epoch, self.train_loader, train=True)
            if self.local_rank == 0 and epoch % self.save_every == 0:
                self._save_snapshot(epoch)
            if self.test_loader:
                self._run_epoch(epoch, self.test_loader, train=False)
