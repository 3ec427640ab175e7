"""How the check of unit 06's batch file judges what its stand-ins of srun and torchrun have seen.

Every `..._problem` returns None, or the details of a FAIL line: `expected`, `got` and the likely
`mistake`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manyhands.checks.ddp.messages import MISTAKES

if TYPE_CHECKING:
    from manyhands.checks.ddp.answers import BatchRun, TorchrunCall
    from manyhands.checks.report import Problem

SCRIPT = ["06_train.py", "--checkpoint", "digits.pt"]  # what exercise 8 is to start


def nodes_seen(run: BatchRun) -> list[Any]:
    """What was started where: the evidence of the criterion "nodes"."""
    return [
        run["nodes"],
        [
            [run["names"][call["node"]], call["nnodes"], call["nproc"], call["script"]]
            for call in run["calls"]
        ],
        ended_before(run),
    ]


def ended_before(run: BatchRun) -> bool:
    """Whether the file ended before anything that it has started in the background.

    One command in the foreground is enough: the others have begun with it.
    """
    return bool(run["calls"]) and all(call["late"] for call in run["calls"])


def nodes_problem(run: BatchRun) -> Problem | None:
    """Judge on which nodes a batch file has started torchrun, and with how many ranks."""
    calls, wanted = run["calls"], run["wanted"]
    places = [call["node"] for call in calls]
    if run["unwritten"]:
        mistake = MISTAKES["unwritten"].format(name="JOB")
    elif run["held"]:
        mistake = MISTAKES["ntasks"].format(nodes=run["nodes"], n=wanted)
    elif run["nodes"] != wanted:
        mistake = MISTAKES["nodes asked"].format(nodes=run["nodes"])
    elif not calls:
        mistake = MISTAKES["no torchrun"].format(said=run["output"])
    elif len(set(places)) < wanted:
        mistake = MISTAKES["first node only" if len(set(places)) == 1 else "some nodes"].format(
            n=wanted, k=len(set(places))
        )
    elif ended_before(run):
        mistake = MISTAKES["ended before"]
    elif len(places) > wanted:
        mistake = MISTAKES["several on a node"].format(n=len(places) // wanted)
    elif any("--nproc" in word for call in calls for word in call["script"]):
        mistake = MISTAKES["options last"]
    elif any(call["nnodes"] != str(wanted) for call in calls):
        mistake = MISTAKES["nnodes"].format(told=calls[0]["nnodes"], n=wanted)
    elif any(call["nproc"] != "2" for call in calls):
        mistake = MISTAKES["nproc"].format(told=calls[0]["nproc"])
    elif any(call["script"] != SCRIPT for call in calls):
        mistake = MISTAKES["script"].format(
            told=" ".join(calls[0]["script"]), wanted=" ".join(SCRIPT)
        )
    else:
        return None
    return {
        "expected": f"torchrun on {wanted} nodes",
        "got": f"on {', '.join(map(str, places)) or 'none'}",
        "mistake": mistake,
    }


def meeting_seen(run: BatchRun) -> list[list[Any]]:
    """Where each torchrun goes to, and whether it knows its node rank.

    This is the evidence of the criterion "meeting".
    """
    ports = {call["port"] for call in run["calls"]}
    return [
        [call["node"], call["address"], len(ports), rank_is_right(run, call)]
        for call in run["calls"]
    ]


def rank_is_right(run: BatchRun, call: TorchrunCall) -> bool:
    """Whether a torchrun has a right node rank.

    Under c10d, the rendezvous assigns it. Otherwise node-rank must be that of the node, which is 0
    where the address is.
    """
    return call["c10d"] or call["node_rank"] == str(call["node"])


def meeting_problem(run: BatchRun) -> Problem | None:
    """Judge whether all calls of torchrun meet at the first node."""
    calls, first = run["calls"], run["names"][0]
    if run["unwritten"]:
        mistake = MISTAKES["unwritten"].format(name="JOB")
    elif not calls:
        mistake = MISTAKES["no torchrun"].format(said=run["output"])
    elif run["nodes"] != run["wanted"] and not run["held"]:
        mistake = MISTAKES["nodes asked"].format(nodes=run["nodes"])
    elif len(calls) < run["nodes"]:
        mistake = MISTAKES["nobody to meet"].format(n=run["nodes"], calls=len(calls))
    elif any("--nproc" in word for call in calls for word in call["script"]):
        mistake = MISTAKES["options last"]
    elif any(call["address"] in ("", "localhost", "127.0.0.1") for call in calls):
        mistake = MISTAKES["local address"]
    elif any(call["node_rank"] == "none" and not call["c10d"] for call in calls):
        mistake = MISTAKES["no node rank"]
    elif {call["node_rank"] for call in calls} == {"0"} and len(calls) > 1 and not calls[0]["c10d"]:
        mistake = MISTAKES["expanded early"]
    elif not all(rank_is_right(run, call) for call in calls):
        mistake = MISTAKES["node rank"]
    elif any(call["address"] != first for call in calls):
        mistake = MISTAKES["address"].format(first=first)
    elif len({call["port"] for call in calls}) > 1 or not calls[0]["port"].isdigit():
        mistake = MISTAKES["port"]
    else:
        return None
    addresses = [
        f"{call['address']}:{call['port']} as {'c10d' if call['c10d'] else call['node_rank']}"
        for call in calls
    ]
    return {
        "expected": f"all at {first}, as 0 to {run['nodes'] - 1}",
        "got": ", ".join(addresses),
        "mistake": mistake,
    }
