"""`%%px`: run a cell on all ranks. `%px` is the same for one line."""

from IPython import get_ipython
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring


def _ranks(text):
    """`0,2` or `0-2` -> [0, 2] or [0, 1, 2]."""
    ranks = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def _cell_id(shell):
    """JupyterLab's id of the cell that runs, so that an edited --setup cell takes the place of what it was; elsewhere None."""
    try:
        return shell.kernel.get_parent()["metadata"].get("cellId")
    except (AttributeError, KeyError, TypeError):
        return None


@magics_class
class RankMagics(Magics):
    """The magics of the newest cluster of this kernel."""

    cluster = None

    @magic_arguments()
    @argument("--ranks", type=_ranks, help="run on these ranks only: 0,2 or 0-2")
    @argument("--setup", action="store_true", help="run this cell again after each healing")
    @argument("--patience", type=float, help="seconds after which ranks that only wait are reported as a hang")
    @argument("--limit", type=float, help="hard limit of this cell in seconds")
    @argument("statement", nargs="*", help="for %%px: the line to run")
    @line_cell_magic
    def px(self, line, cell=None):
        """Run a cell (%%px) or a line (%px) on all ranks; shows what they print, in rank order."""
        if self.cluster is None:
            raise UsageError("%%px needs a cluster. Make one first: cluster = Cluster(nodes=2, ranks_per_node=2)")
        if cell is None:
            self.cluster.px(line)
            return
        args = parse_argstring(self.px, line)
        if args.statement:
            raise UsageError(f"%%px does not know {' '.join(args.statement)!r}; see %%px? for its options")
        self.cluster.px(cell, ranks=args.ranks, setup=args.setup, patience_s=args.patience, limit_s=args.limit, first_line=2,
                        key=_cell_id(self.shell))


def register(cluster):
    """Make `%%px` mean this cluster, where there is an IPython."""
    shell = get_ipython()
    if shell is None:
        return
    magics = shell.magics_manager.registry.get("RankMagics")
    if magics is None:
        shell.register_magics(RankMagics)
        magics = shell.magics_manager.registry["RankMagics"]
    magics.cluster = cluster
