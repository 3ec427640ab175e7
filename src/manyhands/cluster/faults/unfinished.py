"""What the ranks have begun and not finished when a cell ends, and what becomes of it in the next cell.

gloo pairs calls by their number, from cell to cell. So a call that a rank never joined meets that rank's next call,
which may be right and would be blamed. A later cell may still join it. Where the next cell does not look like that, the
call is given up: its group gets new connections, in the same processes, and no variable is lost.
"""

import ast
import time
from collections import Counter
from dataclasses import dataclass, field

from manyhands.cluster.faults.kinds import Where
from manyhands.cluster.faults.sentences import SENTENCES, ranks_text
from manyhands.cluster.on_rank import agent
from manyhands.cluster.on_rank.recorder import COLLECTIVES
from manyhands.cluster.on_rank.tally import SPARE_KINDS

GRACE_S = 0.3  # for calls that all ranks have joined, and that need a moment more


@dataclass
class Left:
    """A call that is not finished: `group` = (name, members); `ranks` have begun it, `others` have not joined it."""

    kind: str  # "unjoined", "running", "message" or "dropped"
    group: tuple
    what: str
    lines: list  # the learner's lines that led to it
    ranks: set
    others: list = field(default_factory=list)

    def key(self):
        spot = self.lines[-1] if self.lines else {"file": "", "line": 0}
        return self.kind, self.group, self.what, spot["file"], spot["line"]


class Unfinished:
    """What is unfinished on the ranks of a cluster, from cell to cell. `ask(function, *args)` calls a function on all
    ranks and returns {rank: answer}; it may raise."""

    def __init__(self, ask):
        self._ask = ask
        self.forget()

    def forget(self):
        """The ranks are new, or their groups."""
        self._facts, self.left, self._told, self._names, self._offsets = {}, [], set(), set(), ({}, {})
        self._renewals = Counter()  # of each group

    def note(self, results):
        self._facts.update({rank: reply["begun"] for rank, reply in results.items() if "begun" in reply})

    # --- when a cell ends ---------------------------------------------------------------------------------------------

    def look(self, ranks, name, tell=True):
        """Sentences on what is unfinished and has not been told yet, or "". `name(lines)`: (place, source) of a line."""
        self.left = []
        if not self._suspicious(ranks):
            return ""
        answers = self._ask(agent.left)
        if not _whole(answers, ranks) or any(answer["busy"] for answer in answers.values()):
            return ""  # where a thread of the learner's goes on, nothing can be said yet
        if not _uneven(answers) and any(not call["ended"] for call in _calls(answers)):
            time.sleep(GRACE_S)
            answers = self._ask(agent.left)
        self._facts = answers
        self._names = {name for answer in answers.values() for name in answer.get("names", [])}
        self._offsets = _offsets(answers)
        self.left = [*_collectives(answers), *_messages(answers)]
        new = [one for one in self.left if tell and one.key() not in self._told]
        self._told |= {one.key() for one in new}
        return _told(new, len(ranks), name) if new else ""

    def _suspicious(self, ranks):
        """Whether the ranks' facts look unfinished: cheap, for it is asked after each cell."""
        return _whole(self._facts, ranks) and (
            any(facts.get("begun") for facts in self._facts.values()) or bool(_uneven(self._facts)))

    # --- before the next one ------------------------------------------------------------------------------------------

    def to_give_up(self, code, everywhere):
        """What the text `code` of the next cell does not go on with, `everywhere`: on all ranks. None as a text: a
        function that may communicate."""
        dropped = [one for one in self.left if one.kind == "dropped"]
        unjoined = [one for one in self.left if one.kind == "unjoined"]
        if unjoined and code is not None and (not everywhere or self._goes_on(code, unjoined)):
            unjoined = []
        return dropped + unjoined

    def _conditions(body, conditions):
    """For each collective in these statements the conditions under which it is called, [(text, whether it must be true),
    ...]. Calls under a condition that itself calls something are left out: it is evaluated on the ranks."""
    found = []
    for node in body:
        branches = [(node.body, True), (node.orelse, False)] if isinstance(node, (ast.If, ast.IfExp)) else []
        if branches and _is_plain(node.test):
            for branch, wanted in branches:
                branch = branch if isinstance(branch, list) else [branch]
                found += _conditions(branch, [*conditions, (ast.unparse(node.test), wanted)])
        elif not branches:
            if isinstance(node, ast.Call) and _called(node) in COLLECTIVES:
                found.append(conditions)
            found += _conditions(ast.iter_child_nodes(node), conditions)
    return found


def _is_plain(test):
    return all(_called(node) in ("get_rank", "get_world_size") for node in ast.walk(test) if isinstance(node, ast.Call))


def _called(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def words(one, name):
    """What the sentences on a `Left` name; `name(lines)`: (place, source)."""
    place, source = name(one.lines)
    return {"what": one.what, "place": place, "source": source.strip(), "ranks": ranks_text(one.ranks),
            "others": ranks_text(one.others) if one.others else SENTENCES["the other side"],
            "group": ranks_text(one.group[1])}


def _told(left, world_size, name):
    lines = [SENTENCES["title left"]]
    for one in left:
        given = words(one, name)
        lines += [SENTENCES["left"].format(**given),
                  "    " + SENTENCES["unmet" if one.kind == "dropped" and one.others else one.kind].format(**given)]
        if one.kind in ("unjoined", "running") and len(one.group[1]) < world_size:
            lines[-1] += " " + SENTENCES["in group"].format(**given)
    kinds = {one.kind for one in left}
    lines += [SENTENCES[f"advice {kind}"] for kind in ("unjoined", "running", "message", "dropped") if kind in kinds]
    return "\n".join(lines)
