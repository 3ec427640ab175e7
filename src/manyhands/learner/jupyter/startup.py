# IPython runs this in each new kernel of the course's JupyterLab.
from contextlib import suppress

with suppress(ImportError):  # a kernel of a different Python, which does not have the course
    from manyhands.learner import fresh_kernel

    fresh_kernel.register()
    del fresh_kernel
del suppress
