"""An empty `%%px` cell on four ranks, against plain ipyparallel's own magic.

Our cell goes through the watchdog. Both are measured in one process.
"""

import contextlib
import io
import logging
import time

from . import few
from .pairs import alternate, ratio_line


def main(times=few(200, 3)):
    """Measure both magics in turn, and give the line of the table."""
    import ipyparallel as ipp
    from IPython.testing.globalipapp import start_ipython

    from manyhands import Cluster

    shell = start_ipython()
    plain = ipp.Cluster(n=4, log_level=logging.ERROR)
    client = plain.start_and_connect_sync()
    view = client[:]
    view.block = True
    view.activate("_plain")
    with Cluster(nodes=1, ranks_per_node=4, framework=None):

        def timed(magic):
            start = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()):
                shell.run_cell_magic(magic, "", "pass")
            return (time.perf_counter() - start) * 1e3

        alternate(lambda: timed("px"), lambda: timed("px_plain"), few(20))
        ours, theirs = alternate(lambda: timed("px"), lambda: timed("px_plain"), times)
    client.close()
    plain.stop_cluster_sync()
    yield ratio_line("an empty %%px cell", ours, theirs, "ms", 1.05)
