"""A learner's script under a real launcher: torchrun, horovodrun, mpirun, one process for each
TF_CONFIG task.
"""
