"""Averages over ranks of what each rank has measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from manyhands.comm import CommunicationError

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


def create_multi_node_evaluator(evaluate: Any, c: Communicator) -> Any:
    """Make an evaluation return, on every rank, the mean over all ranks of each figure.

        evaluate = links.create_multi_node_evaluator(evaluate, c)       # a function that returns {"accuracy": 0.9, ...}
        figures = evaluate(model)                                       # on every rank

    evaluate: a function, or an object with a method `evaluate()`, which is then changed in place
    and returned, as ChainerMN does. What it returns is a dictionary from names to numbers or
    tensors. Ranks count equally, however many examples each has: give all equally many
    (`scatter_dataset(..., force_equal_length=True)`), or return sums and divide afterwards. Who
    calls: all ranks of `c`. Raises ValueError if there is nothing to call or no dictionary comes
    back; CommunicationError, on all ranks, if they return different names. Source: ChainerMN 7.8.1,
    function of the same name.
    """
    method = getattr(evaluate, "evaluate", None)
    if callable(method):
        evaluate.evaluate = _averaged(method, c)
        return evaluate
    if not callable(evaluate):
        raise ValueError(
            "create_multi_node_evaluator takes a function or an object with a method evaluate(), "
            f"and got {type(evaluate).__name__}."
        )
    return _averaged(evaluate, c)


def _averaged(evaluate: Callable[..., Any], c: Communicator) -> Callable[..., dict[str, Any]]:
    def evaluate_on_all(*args: Any, **kwargs: Any) -> dict[str, Any]:
        own = evaluate(*args, **kwargs)
        everyones = c.allgather_obj(dict(own) if isinstance(own, dict) else None)
        if not isinstance(own, dict):
            raise ValueError(
                f"The evaluation returned {type(own).__name__}. Let it return a dictionary of "
                "numbers, such as {'accuracy': 0.9}."
            )
        names = [None if figures is None else sorted(figures) for figures in everyones]
        for rank, theirs in enumerate(names):
            if theirs != names[c.rank]:
                what = "no dictionary" if theirs is None else f"the names {theirs}"
                raise CommunicationError(
                    f"Rank {c.rank} has measured {names[c.rank]}, and rank {rank} returned "
                    f"{what}. Let all ranks return the same names."
                )
        return {
            name: sum(figures[name] for figures in everyones) / c.size
            for name in cast("list[str]", names[c.rank])
        }

    return evaluate_on_all
