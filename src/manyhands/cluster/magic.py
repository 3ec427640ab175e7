"""`%%px`: run a cell on all ranks. `%px` is the same for one line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import nullcontext
from typing import TYPE_CHECKING

from IPython import get_ipython
from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from manyhands.cluster.check_arguments import LARGEST_RANK
from manyhands.cluster.faults.source_lines import LINE_END

if TYPE_CHECKING:
    from typing import Any

    from manyhands.cluster.cluster import Cluster


def _ranks(text: str) -> list[int]:
    """`0,2` or `0-2` -> [0, 2] or [0, 1, 2]."""
    ranks: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if (
            not first.isdecimal()
            or not (last or first).isdecimal()
            or int(first) > int(last or first)
        ):
            raise ArgumentTypeError(f"{text!r} names no ranks: write 0,2 or 0-2")
        if int(last or first) > LARGEST_RANK:
            raise ArgumentTypeError(f"there is no rank {last or first}")
        ranks += range(int(first), int(last or first) + 1)
    return ranks


def _first_line(shell: Any, body: str) -> int:
    """The number of the line, in the cell that runs, at which the body of its `%%px` begins.

    It is 2 where the cell cannot be seen.
    """
    try:
        cell = shell.kernel.get_parent()["content"]["code"]
    except (AttributeError, KeyError, TypeError):
        return 2
    # the magic was called by some code
    if not "".join(cell.split()).endswith("".join(body.split())):
        return 2
    return 1 + len(LINE_END.findall(cell.rstrip())) - len(LINE_END.findall(body.rstrip()))


def _cell_id(shell: Any) -> str | None:
    """JupyterLab's id of the cell that runs, elsewhere None.

    With it, an edited --setup cell takes the place of what it was.
    """
    try:
        return shell.kernel.get_parent()["metadata"].get("cellId")
    except (AttributeError, KeyError, TypeError):
        return None


@magics_class
class RankMagics(Magics):
    """The magics of the newest cluster of this kernel."""

    cluster: Cluster | None = None

    @magic_arguments()
    @argument("--ranks", type=_ranks, help="run on these ranks only: 0,2 or 0-2")
    @argument("--setup", action="store_true", help="run this cell again after each healing")
    @argument(
        "--patience",
        type=float,
        help="seconds after which ranks that only wait are reported as a hang",
    )
    @argument("--limit", type=float, help="time limit of this cell in seconds")
    @argument(
        "--rehearse",
        action="store_true",
        help="report what NCCL on GPUs would do with this cell's communication",
    )
    @argument("statement", nargs="*", help="for %%px: the line to run")
    @line_cell_magic
    def px(self, line: str, cell: str | None = None) -> None:
        """Run a cell (%%px) or a line (%px) on all ranks; shows what they print, in rank order."""
        if self.cluster is None:
            raise UsageError(
                "%%px needs a cluster, but none is running in this notebook. Run the cell that "
                "starts it, for example cluster = Cluster(nodes=2, ranks_per_node=2). If it "
                "failed, run it again."
            )
        if cell is None:
            self.cluster.px(line)
            return
        args = parse_argstring(self.px, line)
        if args.statement:
            raise UsageError(
                f"%%px does not know {' '.join(args.statement)!r}. See %%px? for its options, which"
                " must be in the same line"
            )
        rehearsal = self.cluster.rehearse() if args.rehearse else nullcontext()
        try:
            with rehearsal:
                self.cluster.px(
                    cell,
                    ranks=args.ranks,
                    setup=args.setup,
                    patience_s=args.patience,
                    limit_s=args.limit,
                    first_line=_first_line(self.shell, cell),
                    key=_cell_id(self.shell),
                )
        except ValueError as wrong:  # an option's value; what goes wrong on the ranks is a Fault
            raise UsageError(f"%%px: {wrong}") from None


def register(cluster: Cluster | None = None) -> None:
    """Make `%%px` mean this cluster, where there is an IPython.

    Without a cluster: make it known only, so that it says what it needs. ipyparallel's client
    registers its own `%%px`, with different options, where there is none yet.
    """
    shell = get_ipython()
    if shell is None:
        return
    magics = shell.magics_manager.registry.get("RankMagics")
    if magics is None:
        shell.register_magics(RankMagics)
        magics = shell.magics_manager.registry["RankMagics"]
    magics.cluster = cluster or magics.cluster
