"""Why a task of TensorFlow's cluster waits for the others.

The answer comes from TF_CONFIG of each rank, and from whether anything listens at the addresses in
it.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text
from manyhands.cluster.faults.hang_causes import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from manyhands.cluster.faults.kinds import Where
    from manyhands.cluster.payloads import ErrorMessage, TaskConfig

CONNECT_S = 0.3
STARTS = re.compile(r"(Strategy|connect_to_cluster)$")  # what waits until every task has started
TAKEN = "Could not start gRPC server"
# what TensorFlow says of collectives that do not fit together
MISMATCH = re.compile(
    r"Collective instance \d+ expected (?P<expected>.+?) but got (?P<got>.+?)(?:\n|$)|"
    r"[Ss]hape mismatch in the collective instance|is joining a group with"
)
DATA_TYPES = {
    "1": "float32",
    "2": "float64",
    "3": "int32",
    "9": "int64",
    "10": "bool",
    "14": "bfloat16",
    "19": "float16",
}  # TensorFlow's numbers


def cause_of_start(
    where: dict[int, Where], configs: Mapping[int, TaskConfig | None]
) -> Cause | None:
    """The `Cause` where ranks wait until all tasks have started, or serve forever.

    None where no rank does. `configs` is {rank: what tf_config.read gives}.
    """
    starting = {
        rank: here
        for rank, here in where.items()
        if here.state == "waits" and STARTS.search(here.call)
    }
    tasks = _tasks(configs)
    if not starting:
        serving = [
            rank for rank, here in where.items() if here.state == "waits" and here.call == "join"
        ]
        return (
            Cause(SENTENCES["serves"].format(servers=ranks_text(serving)), serving)
            if serving and tasks
            else None
        )
    if same := cause_of_same_task(configs):
        return same
    config = next((configs[rank] for rank in sorted(starting) if configs.get(rank)), None)
    if config is None:
        return None
    awaited = {
        (kind, index): address
        for kind, addresses in config["cluster"].items()
        for index, address in enumerate(addresses)
        if not set(tasks.get((kind, index), [])) & set(starting)
    }
    waiters = ranks_text(starting)
    missing = [task for task in awaited if task not in tasks]
    if missing:
        others = [rank for rank in where if rank not in starting and not configs.get(rank)]
        return Cause(
            SENTENCES["no such task"].format(waiters=waiters, tasks=_named(missing)), others
        )
    silent = {task: address for task, address in awaited.items() if _nothing_listens(address)}
    if silent:
        text = ", ".join(
            SENTENCES["at address"].format(
                task=_named([task]), ranks=ranks_text(tasks[task]), address=address
            )
            for task, address in silent.items()
        )
        culprits = sorted({tasks[task][0] for task in silent})
        return Cause(SENTENCES["silent task"].format(waiters=waiters, tasks=text), culprits)
    return Cause(
        SENTENCES["tasks start"].format(
            waiters=waiters, tasks=_named(awaited) or SENTENCES["all tasks"]
        ),
        [],
    )


def cause_of_same_task(configs: Mapping[int, TaskConfig | None]) -> Cause | None:
    """The `Cause` where two ranks have the same task in their TF_CONFIG, or None."""
    for task, ranks in _tasks(configs).items():
        if len(ranks) > 1:
            return Cause(
                SENTENCES["same task"].format(ranks=ranks_text(ranks), task=_named([task])), ranks
            )
    return None


def cause_of_mismatch(error: ErrorMessage) -> str | None:
    """What TensorFlow has said of collectives that do not fit together, as a likely cause.

    None where it has said nothing of the kind.
    """
    difference = MISMATCH.search(error["evalue"])
    if difference is None:
        return None
    named = {
        part: re.sub(
            r"data_type (\d+)", lambda match: DATA_TYPES.get(match[1], match[0]), difference[part]
        )
        for part in ("expected", "got")
        if difference[part]
    }
    types = [match for text in named.values() if (match := re.match(r"type \d+ and ", text))]
    # the same kind of collective
    if len(types) == len(named) and len({match[0] for match in types}) == 1:
        named = {part: text[types[0].end() :] for part, text in named.items()}
    detail = SENTENCES["workers expected"].format(**named) if named else ""
    return SENTENCES["workers differ"].format(detail=detail)


def _tasks(configs: Mapping[int, TaskConfig | None]) -> dict[tuple[str, int], list[int]]:
    ranks_of: dict[tuple[str, int], list[int]] = {}
    for rank, config in sorted(configs.items()):
        if config:
            ranks_of.setdefault(config["task"], []).append(rank)
    return ranks_of


def _named(tasks: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{kind} {index}" for kind, index in tasks)


def _nothing_listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError, OverflowError):  # it cannot be seen from here
        return False
    return False
