# IPython runs this in each new kernel of the course's JupyterLab, and in each rank whose engine is
# started from one. A docstring here would become the `__doc__` of the learner's notebook.
# ruff: noqa: D100
import sys
from contextlib import suppress

with suppress(ImportError):  # a kernel of a different Python, which does not have the course
    if "ipyparallel.engine.app" not in sys.modules:  # a rank runs no cells of its own
        from manyhands.learner import cells_run, fresh_kernel

        fresh_kernel.register()
        cells_run.register()
        del cells_run, fresh_kernel
del suppress, sys
