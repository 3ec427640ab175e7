"""nbval on notebooks or solutions, several side by side.

`see_notebooks.py [--nccl] notebooks|solutions UNIT ...`: those that differ are reported whole.

The course chooses the device by itself; with --nccl all ranks get one GPU, and NCCL
(`sitecustomize.py`). A notebook whose framework this machine lacks is not among the plan's.
"""

import os
import sys
from pathlib import Path

from gpu_tell import failure, figure, needs_shared_nccl

from manyhands.authoring.validate import JOBS, Validation

LACKS = (
    "mpiexec.hydra is missing",
    "No module named 'mpi4py'",
    "No module named 'lightning'",
    "No module named 'tensorflow'",
)
jobs = JOBS
if sys.argv[1] == "--nccl":
    needs_shared_nccl()
    # kernels that wait for each other take turns on the GPU
    os.environ["GPU_BACKEND"], jobs = "nccl", min(JOBS, 4)
    del sys.argv[1]
folder, *units = sys.argv[1:]
pattern = "{}_*.ipynb" if folder == "notebooks" else "{0}_*/{0}_*.ipynb"
paths = [path for unit in units for path in sorted(Path(folder).glob(pattern.format(unit)))]
assert len(paths) == len(units), f"in {folder} are {paths}, and wanted were {units}"
good, come = True, set()
with Validation(paths, jobs) as validation:
    for verdict in validation:
        name = Path(verdict.notebook).stem
        come.add(name)
        lack = next(
            (lack for lack in LACKS if lack in verdict.text and "\n1 failed, " in verdict.text),
            None,
        )
        if verdict.passed:
            figure(f"{name}: as stored, in", verdict.seconds, "s")
        elif lack:
            figure(f"{name}: as stored but for one cell, since", lack)
        else:
            good = False
            failure(f"{name}: not as stored", verdict.text)
        print(
            "still to come: "
            f"{', '.join(path.stem for path in paths if path.stem not in come) or 'none'}",
            flush=True,
        )
sys.exit(not good)
