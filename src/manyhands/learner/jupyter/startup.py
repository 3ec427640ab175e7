"""IPython runs this in each new kernel of the course's JupyterLab."""

from contextlib import suppress

with suppress(ImportError):  # a kernel of a different Python, which does not have the course
    from manyhands.learner import cells_run, fresh_kernel

    fresh_kernel.register()
    cells_run.register()
    del cells_run, fresh_kernel
del suppress
