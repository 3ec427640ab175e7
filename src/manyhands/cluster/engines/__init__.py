"""Where the ranks live and how their processes are started and ended: on this machine, in
containers, by a launcher.
"""
