"""How ranks that take their steps alone put together what they have learned: what is noted of the first time."""


class Average:
    """`facts`, once it was seen: the "step" it followed, the rank's weights "before" it, and the weights "after" it. If
    an outer optimiser takes the step (DiLoCo): the weights that it starts "from", and the gradient "given" to it.
    """

    def __init__(self):
        self.facts, self._weights, self._optimizer = None, {}, None

    def stepped(self, optimizer, weights):
        """An optimiser has left these weights, {name: numbers}."""
        self._weights, self._optimizer = weights, optimizer

    def written(self, step, weights):
        """Since the last step, something has written these weights."""
        if self.facts is None and self._weights:
            self.facts = {"step": step, "before": self._weights, "after": weights}

    def taken_over(self, optimizer, step, parameters, part):
        """An optimiser is about to take a step on these parameters; `part` gives what is kept of a tensor."""
        if self.facts is None and optimizer is not self._optimizer and set(parameters) == set(self._weights):
            self.facts = {"step": step, "before": self._weights,
                          "from": {name: part(one) for name, one in parameters.items()},
                          "given": {name: part(one.grad) for name, one in parameters.items() if one.grad is not None}}
