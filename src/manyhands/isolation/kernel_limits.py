"""What a graded kernel may use: seconds, memory, processes, output."""

from dataclasses import dataclass

from manyhands.machine import CELL_S

OWN_S = 300  # for what the grader does itself about a submission; on a busy machine it is long
FILE_BYTES = 2**30  # that it writes
TASKS_PER_PROCESS = 10  # what a control group limits are threads


@dataclass(frozen=True)
class Limits:
    """What a submission may use."""

    cell_s: float = CELL_S
    total_s: float = 900
    start_s: float = 60
    memory_bytes: int = 4 * 2**30
    processes: int = 400
    output_bytes: int = 200 * 2**20  # while one cell runs
    interrupt_s: float = 15  # for a cell to end once it was interrupted

    @property
    def wall_s(self) -> float:
        """For all that is done about a submission.

        The grader's own reading and comparing have their share.
        """
        return self.total_s + OWN_S
