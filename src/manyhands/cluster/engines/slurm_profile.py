"""The profile "slurm": the ranks are the tasks of a Slurm job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from manyhands.cluster.engines.profiles import Profile, need_program

if TYPE_CHECKING:
    from typing import Any

    import ipyparallel as ipp
    from traitlets.config import Config

    from manyhands.cluster.payloads import EngineFacts


class Slurm(Profile):
    """A Slurm job for the ranks alone.

    Partition, account and time are set as for any job: SBATCH_PARTITION, SBATCH_ACCOUNT,
    SBATCH_TIMELIMIT.
    """

    name, launcher = "slurm", "slurm"
    too_few = (
        "{came} of {n} ranks came within {seconds:.0f} s. Look at `squeue -u $USER`: is the job "
        "waiting for free nodes? MANYHANDS_START_S=3600 waits for an hour."
    )

    def configure(self, config: Config, cluster: ipp.Cluster, folder: str) -> None:
        """Set the job's script; RuntimeError without `sbatch`."""
        need_program(
            "sbatch",
            "Slurm's commands are available on its login nodes, so start JupyterLab there.",
        )
        slurm = config.SlurmEngineSetLauncher
        slurm.batch_file_name = os.path.join(folder, "job.sbatch")
        slurm.batch_template = _SBATCH
        slurm.namespace = {"nodes": self.nodes, "ranks_per_node": self.ranks_per_node}

    @staticmethod
    def sort_key(facts: EngineFacts) -> Any:
        """The number of the task in its job."""
        return facts["slurm_procid"]


_SBATCH = """#!/bin/sh
#SBATCH --export=ALL
#SBATCH --job-name=manyhands
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={ranks_per_node}
#SBATCH --output={output_file}
exec srun --kill-on-bad-exit=0 {program_and_args}
"""
