"""Where the ranks live, and how their processes are started and ended.

They live on this machine, in containers, or where a launcher starts them.
"""
