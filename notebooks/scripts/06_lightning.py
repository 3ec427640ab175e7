"""The course's task with Lightning's Trainer, which brings DDP, devices and loop.

    python 06_lightning.py        two ranks: Lightning starts the second one itself; on Slurm or under torchrun it takes those that are there
"""

import lightning
import torch
from torch.nn.functional import cross_entropy

from manyhands import track
from manyhands.data import shard


class Task(lightning.LightningModule):
    """What is the learner's: the network, the loss of a rank's rows, the optimiser."""

    def __init__(self):
        super().__init__()
        self.network = track.network()

    def training_step(self, batch, step):
        x, y = batch
        part = shard(track.ROWS, self.global_rank, self.trainer.world_size)
        return cross_entropy(self.network(x[part]), y[part], reduction="sum") * self.trainer.world_size / track.ROWS

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=track.RATE, weight_decay=track.DECAY)

    def train_dataloader(self):
        """The whole batch of each step; each rank takes its own rows of it."""
        x, y = (torch.from_numpy(array) for array in track.data())
        batches = [(x[track.rows(step)], y[track.rows(step)]) for step in range(track.STEPS)]
        return torch.utils.data.DataLoader(batches, batch_size=None)


def main():
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(devices=2, strategy="ddp", max_epochs=1, use_distributed_sampler=False, **quiet)
    task = Task()
    trainer.fit(task)
    far = trainer.strategy.reduce(torch.tensor(track.distance(task.parameters(), track.one_process()[0])), reduce_op="max")
    if trainer.is_global_zero:
        print(f"{trainer.world_size} ranks, {trainer.global_step} steps; {far.item():.0e} from one process, equal to 1e-12: {far.item() < 1e-12}")


if __name__ == "__main__":
    main()
