"""What ties the forward call on one rank to the backward call on another."""

from manyhands.comm.control import CommunicationError, Wait


class Ticket:
    """One operation's two halves: gradients that this rank owes to others, and whether it waits for one itself.

    It belongs to the node in autograd's graph. When the node goes before backward has passed it, those who would wait for this rank are told
    that no gradient comes; so an output that nobody uses never hangs another rank.
    """

    __slots__ = "c", "op", "forward", "call", "waits", "owes", "tells", "done"

    def __init__(self, c, op, forward, waits=False):
        """Made before anything is sent: an answer may come while this rank is still sending."""
        self.c, self.op, self.forward, self.call, self.waits = c, op, forward, forward + ".backward", waits
        self.owes = self.tells = ()  # ranks of c
        self.done = False
        if waits:
            c._exchange.control.live.add(op)

    def owe(self, ranks):
        """The ranks that wait for a gradient from this one."""
        self.owes = tuple(ranks)
        if self.owes:
            self.c._exchange.control.receipts.add(self.op)

    def send(self, gradients):
        """Send `gradients`, {rank: list of tensors or None}, to those of them that this rank owes one."""
        self.done = True
        if not self.owes:
            return
        exchange, op, members = self.c._exchange, self.op, self.c.members
        if op in exchange.control.freed:
            raise CommunicationError(exchange.control.freed.pop(op))
        messages, facts = [(members[rank], _dense(gradients[rank])) for rank in self.owes], {"op": op}
        unfinished = exchange.post(messages, ("gradient", op), self.call, facts)
        if unfinished:
            exchange.finish(unfinished, Wait("gradient", self.c, self.call, facts))

    def take(self, rank):
        """The gradients from `rank`, a list; None for what it did not use."""
        self.done = True
        exchange = self.c._exchange
        if self.op in exchange.control.refused:
            raise CommunicationError(exchange.control.refused.pop(self.op))
        facts = {"op": self.op}
        message = exchange.take(self.c.members[rank], ("gradient", self.op), Wait("gradient", self.c, self.call, facts))
        return message.tensors

    def __del__(self):
        exchange, op = self.c._exchange, self.op
        if exchange.closed:
            return
        if not self.done:
            for rank in self.owes:
                exchange.notify(self.c.members[rank], ("gradient", op), self.call, freed=True, op=op)
            for rank in self.tells:
                text = (f"Rank {self.c.rank} does not wait for the gradient of its {self.forward} any more: the result was dropped. On that rank, give the delegate to "
                        "recv as delegate_variable, join it to the loss by pseudo_connect, or call its backward(). If no gradient is wanted, detach.")
                exchange.notify(self.c.members[rank], ("control", "freed"), "", op=op, text=text)
        if self.waits:
            if exchange.inbox or exchange.at_work():
                exchange.later(lambda: _give_up(exchange, op))
            exchange.control.live.discard(op)
            exchange.control.refused.pop(op, None)
        if self.owes:
            exchange.control.receipts.discard(op)
            exchange.control.freed.pop(op, None)


def _give_up(exchange, op):
    """Gradients that have come for a node that is gone."""
    for key, source in [k for k in exchange.inbox if k[0] == ("gradient", op)]:
        for message in exchange.inbox.pop((key, source)):
            exchange.control.unclaimed_gradient(message)


def _dense(tensors):
    return [t if t is None or not t.is_sparse else t.to_dense() for t in tensors]
