"""How the check of unit 06's fine-tuning loop judges what the ranks have returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.checks.ddp.diagnosis import far
from manyhands.checks.ddp.messages import MISTAKES

if TYPE_CHECKING:
    from manyhands.checks.ddp.answers import Layers, TunedAnswer
    from manyhands.checks.report import Problem


def same_rates(answer: TunedAnswer, first: TunedAnswer) -> bool:
    """Whether a rank has returned a rate for each epoch, and the same ones as rank 0."""
    return (
        answer["rates"] is not None
        and len(answer["rates"]) == answer["epochs"]
        and answer["rates"] == first["rates"]
    )


def of_one_rank(answer: TunedAnswer) -> int | None:
    """The rank by whose own loss these rates were lowered; None if there is none."""
    return next(
        (rank for rank, rates in enumerate(answer["own"]) if rates == answer["rates"]), None
    )


def rates_problem(
    rank: int, answer: TunedAnswer, first: TunedAnswer, agreed: bool
) -> Problem | None:
    """What is wrong with the rates after each epoch that the loop of this rank has returned.

    `agreed`: whether all ranks have returned the same ones.
    """
    rates, epochs = answer["rates"], answer["epochs"]
    if rates is None or len(rates) != epochs:
        got = "something else" if rates is None else f"{len(rates)} numbers"
        return {
            "rank": rank,
            "expected": f"{epochs} rates",
            "got": got,
            "mistake": MISTAKES["no rates"],
        }
    if rates != first["rates"]:
        got = f"rank 0: {first['rates']}; rank {rank}: {rates}"
        return {
            "rank": rank,
            "expected": "the same rates on all ranks",
            "got": got,
            "mistake": MISTAKES["own rates"],
        }
    if not agreed:
        return None
    if len(set(rates)) == 1:
        return {"rank": rank, "got": rates, "mistake": MISTAKES["rate never lowered"]}
    if of_one_rank(answer) is not None:
        return {
            "rank": rank,
            "got": rates,
            "mistake": MISTAKES["rates of one rank"].format(rank=of_one_rank(answer)),
        }
    return None


def same_layers(answer: TunedAnswer, first: TunedAnswer) -> list[bool]:
    """For the first layer and the head, whether a rank has the weights of rank 0."""
    return [
        not far(got, of_rank_0) for got, of_rank_0 in zip(answer["got"], first["got"], strict=True)
    ]


def layers_problem(rank: int, answer: TunedAnswer, first: TunedAnswer) -> Problem | None:
    """Which layer of this rank differs from rank 0's at the end, and what is the likely reason."""
    of_first_layer, of_head = same_layers(answer, first)
    if of_first_layer and of_head:
        return None
    mistake = (
        "late layers"
        if of_head
        else "layers and rates"
        if not same_rates(answer, first)
        else "all layers"
    )
    place = 1 if of_first_layer else 0
    numbers = "; ".join(
        f"rank {number_of_rank}: {[float(f'{number:.6g}') for number in of['got'][place][:3]]}"
        for number_of_rank, of in ((0, first), (rank, answer))
    )
    return {
        "rank": rank,
        "expected": "the same weights on all ranks",
        "got": numbers,
        "mistake": MISTAKES[mistake],
    }


def labels_problem(rank: int, answer: TunedAnswer, together: bool) -> Problem | None:
    """Judge whether the weights are those of a single process, or which mistake leads to them.

    `together`: whether all ranks have the same weights.
    """

    def differs(weights: Layers) -> bool:
        return any(map(far, answer["got"], weights))

    if not differs(answer["serial"]):
        return None
    if not together:
        mistake = "ranks apart"
    else:
        mistake = next(
            (way for way, weights in answer["ways"].items() if not differs(weights)),
            "other fine-tuning",
        )
        mistake = "rates by another loss" if mistake == "right" else mistake
    place = 0 if far(answer["got"][0], answer["serial"][0]) else 1
    return {
        "rank": rank,
        "expected": answer["serial"][place],
        "got": answer["got"][place],
        "mistake": MISTAKES[mistake],
    }


def unlabelled_problem(rank: int, answer: TunedAnswer) -> Problem | None:
    """Whether the weights are also right after steps in which one micro-batch has no label."""
    place = next(
        (
            place
            for place, got in enumerate(answer["emptied"])
            if far(got, answer["serial emptied"][place])
        ),
        None,
    )
    if place is None:
        return None
    return {
        "rank": rank,
        "expected": answer["serial emptied"][place],
        "got": answer["emptied"][place],
        "mistake": MISTAKES["no label"],
    }
