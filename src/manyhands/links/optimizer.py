"""An optimizer that averages the gradients of all ranks before each step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import torch

from manyhands import functions
from manyhands.comm import CommunicationError
from manyhands.comm.communicator import gradient_of

if TYPE_CHECKING:
    from manyhands.comm.communicator import Communicator


def create_multi_node_optimizer(
    optimizer: torch.optim.Optimizer, c: Communicator, double_buffering: bool = False
) -> MultiNodeOptimizer:
    """Wrap a `torch.optim` optimizer so that all ranks take the same steps: data parallelism.

        optimizer = links.create_multi_node_optimizer(torch.optim.Adam(model.parameters()), c)
        for x, t in batches:                              # each rank its own
            optimizer.update(loss_function, x, t)         # or: zero_grad(), loss.backward(), step()

    Returns a `MultiNodeOptimizer`, which says what a step does. With `double_buffering=True`
    (collective: it splits the communicator) gradients are exchanged in a thread while the next ones
    are computed, and each step applies the averages of the step before. Raises ValueError for
    something that is not an optimizer, for LBFGS and for SparseAdam. Source: ChainerMN 7.8.1,
    function of the same name.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(
            "create_multi_node_optimizer takes a torch.optim optimizer and got "
            f"{type(optimizer).__name__}. Make one first: torch.optim.SGD(model.parameters(), "
            "lr=0.1)."
        )
    if isinstance(optimizer, (torch.optim.LBFGS, torch.optim.SparseAdam)):
        why = (
            "computes the loss several times in a step"
            if isinstance(optimizer, torch.optim.LBFGS)
            else "takes only sparse gradients, whereas the mean is dense"
        )
        raise ValueError(
            f"create_multi_node_optimizer cannot wrap {type(optimizer).__name__}, which {why}. Take"
            " Adam, for example."
        )
    return (_DoubleBuffered if double_buffering else MultiNodeOptimizer)(optimizer, c)


class MultiNodeOptimizer(torch.optim.Optimizer):
    """What `create_multi_node_optimizer` makes.

    `actual_optimizer` is the optimizer that it was given.

    The first `step()` changes nothing by its gradients: it copies the parameters of rank 0 to all
    ranks, so that ranks may start from different seeds. It does so again when parameters have been
    added. Every other `step()` replaces each gradient by the mean over the ranks, where None counts
    as zeros, and then steps the wrapped optimizer. Frozen parameters (`requires_grad=False`) are
    copied at the first step and have no gradients. Buffers of the model are not the optimizer's:
    copy them with `c.bcast_data(model)`. Everything else (`zero_grad`, `param_groups`,
    `state_dict`, hooks) is the wrapped optimizer's own; schedulers take this one. The state_dict
    does not remember that the parameters have been copied: the first step after a restart copies
    them again. Who calls: all ranks of `c`, equally often, with the same parameters in the same
    order. CommunicationError if a rank does not. Source: ChainerMN 7.8.1; averaging in place of a
    server: Goyal et al. 2017, https://arxiv.org/abs/1706.02677, section 3.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, c: Communicator) -> None:
        # not super().__init__: parameters, state and hooks stay where they are, in the wrapped
        # optimizer
        self.actual_optimizer, self.c = optimizer, c
        self._known: list[int] | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "actual_optimizer":  # not yet there: while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.actual_optimizer, name)

    param_groups = property(lambda self: self.actual_optimizer.param_groups)
    state = property(lambda self: self.actual_optimizer.state)
    defaults = property(lambda self: self.actual_optimizer.defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Average the gradients and step; the first time, copy the parameters of rank 0.

        Returns what `closure` returns: it computes loss and gradients.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._has_changed():
            self._copy_parameters()
        else:
            self._exchange_and_step()
        return loss

    def update(
        self, lossfun: Callable[..., torch.Tensor] | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Step, as ChainerMN calls it; with a function, first compute the gradients.

        It then computes `lossfun(*args, **kwargs)`, clears the gradients and goes backward.
        """
        if lossfun is not None:
            loss = lossfun(*args, **kwargs)
            self.zero_grad()
            loss.backward()
            del loss
        self.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As `torch.optim.Optimizer.zero_grad`, of the wrapped optimizer."""
        self.actual_optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's state; it fits the same optimizer without ranks."""
        return self.actual_optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state into the wrapped optimizer, on this rank only."""
        self.actual_optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; the next step copies those of rank 0 to all ranks."""
        self.actual_optimizer.add_param_group(param_group)

    def __repr__(self) -> str:
        return f"MultiNodeOptimizer over {self.c.size} ranks of {self.actual_optimizer!r}"

    def _parameters(self) -> list[torch.Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _has_changed(self) -> bool:
        known, self._known = self._known, [id(p) for p in self._parameters()]
        return known != self._known

    @torch.no_grad()
    def _copy_parameters(self) -> None:
        parameters = self._parameters()
        flats = []
        for own in flatten(parameters):
            flats.append(functions.bcast(self.c, own))
            if (flats[-1].dtype, flats[-1].shape) != (own.dtype, own.shape):
                raise CommunicationError(
                    f"The optimizer of rank 0 has {flats[-1].numel()} parameters of "
                    f"{flats[-1].dtype}, that of rank {self.c.rank} has {own.numel()} of "
                    f"{own.dtype}. Make the same model on all ranks."
                )
        for p, new in zip(parameters, unflatten(flats, parameters), strict=True):
            p.copy_(new)

    def _exchange_and_step(self) -> None:
        trained = self._trained()
        flats = [self._mean(flat, self.c) for flat in flatten([gradient_of(p) for p in trained])]
        self._step_with(unflatten(flats, trained))

    def _trained(self) -> list[torch.Tensor]:
        return [p for p in self._parameters() if p.requires_grad]

    @staticmethod
    def _mean(flat: torch.Tensor, c: Communicator) -> torch.Tensor:
        return c.allreduce(flat).div_(c.size)

    def _step_with(self, gradients: Sequence[torch.Tensor]) -> None:
        for p, grad in zip(self._trained(), gradients, strict=True):
            p.grad = grad
        self.actual_optimizer.step()


class _DoubleBuffered(MultiNodeOptimizer):
    """An optimizer that exchanges one step's gradients in a thread until the next step needs them.

    The thread has a communicator of its own.

    Step 1 copies the parameters. Step 2 hands its gradients over and changes nothing. Step k hands
    its own over and applies the mean of step k - 1's.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, c: Communicator) -> None:
        super().__init__(optimizer, c)
        self._own = c.split(0, c.rank)
        self._thread: threading.Thread | None = None
        self._means: list[torch.Tensor] | None = None
        self._error: Exception | None = None

    def _has_changed(self) -> bool:
        changed = super()._has_changed()
        if changed:
            self.wait()
            self._means = None
        return changed

    def wait(self) -> None:
        """Wait until no exchange is under way; call it before the communicator is closed.

        Raises what the exchange has raised.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _exchange_and_step(self) -> None:
        self.wait()
        trained = self._trained()
        means, self._means = self._means, None
        self._thread = threading.Thread(
            target=self._exchange,
            args=(flatten([gradient_of(p) for p in trained]),),
            name="gradients",
        )
        self._thread.start()
        if means is not None:
            self._step_with(unflatten(means, trained))

    def _exchange(self, flats: list[torch.Tensor]) -> None:
        try:
            self._means = [self._mean(flat, self._own) for flat in flats]
        except Exception as error:  # noqa: BLE001 - for the next step to raise, in the user's thread
            self._error = error


def _alike(tensors: Sequence[torch.Tensor]) -> Collection[list[int]]:
    """The places of the tensors of each dtype and device."""
    places: dict[tuple[torch.dtype, torch.device], list[int]] = {}
    for i, tensor in enumerate(tensors):
        places.setdefault((tensor.dtype, tensor.device), []).append(i)
    return places.values()


@torch.no_grad()
def flatten(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """One new flat tensor for each dtype and device."""
    return [torch.cat([tensors[i].reshape(-1) for i in places]) for places in _alike(tensors)]


def unflatten(flats: Sequence[torch.Tensor], like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors again, in the shapes of `like`, as views of the flat ones."""
    tensors = list(like)
    for flat, places in zip(flats, _alike(like), strict=True):
        for i, part in zip(places, flat.split([like[i].numel() for i in places]), strict=True):
            tensors[i] = part.view_as(like[i])
    return tensors
