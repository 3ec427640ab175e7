"""Run a learner's script under a real launcher.

The launchers are torchrun, horovodrun, mpirun, and one process for each TF_CONFIG task.
"""
