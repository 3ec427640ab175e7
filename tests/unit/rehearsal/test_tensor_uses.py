"""The recorder hears of operations on tensors from the first asynchronous call on.

It does so also where that comes in the midst of a backward; before, and where none comes, it costs
nothing.
"""

import threading
from typing import ClassVar

import pytest
import torch
import torch.distributed as dist
from torch.autograd.function import once_differentiable
from torch.utils import _python_dispatch as dispatch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from manyhands.rehearsal.trace_recorder import Recorder


@pytest.fixture(autouse=True)
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def early(program):
    """Return the operations that the program does too early, and whether they were listened to.

    The latter is as it was when the program ended.
    """
    recorder = Recorder()
    recorder.start()
    try:
        program()
        heard = bool(_get_current_dispatch_mode_stack())
    finally:
        events = recorder.stop()
    assert not _get_current_dispatch_mode_stack() and not dispatch._is_in_torch_dispatch_mode
    return [event.call for event in events if event.kind == "early"], heard


def summed(tensor):
    return dist.all_reduce(tensor, async_op=True)


def weights(n=3):
    return torch.ones(n, requires_grad=True)


class Unwaited(torch.autograd.Function):
    works: ClassVar = []

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        Unwaited.works.append(summed(gradient))
        return gradient


class Decorated(Unwaited):
    backward = staticmethod(once_differentiable(Unwaited.backward))


def no_call():
    (weights() * 2).sum().backward()


def waits_at_once():
    dist.all_reduce(torch.ones(3))
    no_call()


def reads_before_the_wait():
    x = torch.ones(3)
    work = summed(x)
    x + 1
    work.wait()


def reads_after_inference():
    x = torch.ones(3)
    with torch.inference_mode():
        work = summed(x)
    x + 1
    work.wait()


def returns_before_the_wait_in_a_backward():
    Unwaited.apply(weights() * 2).sum().backward()
    Unwaited.works.pop().wait()


def returns_before_the_wait_in_a_decorated_backward():
    Decorated.apply(weights() * 2).sum().backward()
    Unwaited.works.pop().wait()


def reads_after_a_backward_with_hooks():
    w, works = weights(), []
    w.register_post_accumulate_grad_hook(lambda w: works.append(summed(w.grad)))
    (w * 2).sum().backward()
    w.grad.add_(1)
    works[0].wait()


def goes_on_after_a_hook_of_an_activation():
    works, h = [], weights() * 2
    h.register_hook(lambda gradient: works.append(summed(gradient)))
    (h * 3).sum().backward()
    works[0].wait()


@pytest.mark.parametrize(
    "program, operations, heard",
    [
        (no_call, [], False),
        (waits_at_once, [], False),
        (reads_before_the_wait, ["add"], True),
        (reads_after_inference, ["add"], True),
        (returns_before_the_wait_in_a_backward, ["mul"], True),
        (returns_before_the_wait_in_a_decorated_backward, ["mul"], True),
        (reads_after_a_backward_with_hooks, ["add_"], True),
        (goes_on_after_a_hook_of_an_activation, ["mul"], True),
    ],
)
def test_what_comes_too_early_is_heard(program, operations, heard):
    assert early(program) == (operations, heard)


def test_a_thread_of_the_program_may_begin_an_operation():
    def program():
        x, works = torch.ones(3), []
        thread = threading.Thread(target=lambda: works.append(summed(x)))
        thread.start()
        thread.join()
        x + 1
        works[0].wait()

    assert early(program) == (["add"], True)


def test_a_backward_from_an_edge_of_the_graph_is_heard_from_its_start():
    def program():
        edge = torch.autograd.graph.get_gradient_edge(Unwaited.apply(weights() * 2).sum())
        torch.autograd.backward(edge, grad_tensors=torch.ones(()))
        Unwaited.works.pop().wait()

    assert early(program) == (["mul"], True)


def test_hooks_from_before_the_recording_are_heard():
    w, works = weights(), []
    w.register_post_accumulate_grad_hook(lambda w: works.append((summed(w.grad), w.grad * 2)))
    assert early(lambda: (w * 2).sum().backward()) == (["mul"], True)
    works[0][0].wait()


def test_a_mode_of_the_program_ends_as_it_began():
    class Counts(TorchDispatchMode):
        n = 0

        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            Counts.n += operator.namespace == "aten"
            return operator(*args, **(kwargs or {}))

    def program():
        x = torch.ones(3)
        with Counts():
            work = summed(x)
            x + 1
        assert Counts.n == 1
        x + 1
        work.wait()
        assert Counts.n == 1

    assert early(program) == (["add", "add"], True)


def test_an_operation_that_calls_leaves_one_listener():
    @torch.library.custom_op("manyhands_test::summed", mutates_args=("x",))
    def operation(x: torch.Tensor) -> None:
        summed(x).wait()

    def program():
        x = torch.ones(3)
        for _ in range(3):
            operation(x)
        assert len(_get_current_dispatch_mode_stack()) == 1
        work = summed(x)
        x + 1
        work.wait()

    assert early(program) == (["add"], True)


def test_a_mode_of_the_program_that_does_not_end_stays():
    class Idle(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            return operator(*args, **(kwargs or {}))

    recorder, mode = Recorder(), Idle()
    recorder.start()
    with mode:
        summed(torch.ones(3)).wait()
        recorder.stop()
        assert _get_current_dispatch_mode_stack() == [mode]
    assert not _get_current_dispatch_mode_stack()


def test_what_is_compiled_runs_as_it_is_and_the_recorder_with_it():
    def function(x):
        dist.all_reduce(x)
        return x + 1

    graphs = []
    compiled = torch.compile(
        function, backend=lambda graph, _: graphs.append(graph) or graph.forward
    )
    assert early(lambda: compiled(torch.ones(3))) == ([], False)
    assert early(lambda: torch.compile(function, backend="eager")(torch.ones(3))) == ([], False)
    assert not graphs
    torch.compile(lambda x: x + 1, backend=lambda graph, _: graphs.append(graph) or graph.forward)(
        torch.ones(3)
    )
    assert graphs
