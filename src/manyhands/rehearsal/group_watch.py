"""Observes which backend and which members are asked for when a group is made."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyhands import gpu_stand_in
from manyhands.cluster.on_rank import cpu_groups
from manyhands.cluster.on_rank.stack import is_user_file

if TYPE_CHECKING:
    from manyhands.rehearsal.trace_recorder import Recorder


def watch_groups(recorder: Recorder) -> list[Callable[[], object]]:
    """Make groups that are asked of NCCL of gloo, and take those that name gloo for the CPU's.

    Returns how to undo it.
    """
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    original_init, original_group = c10d.init_process_group, c10d.new_group
    undo: list[Callable[[], object]] = []

    @functools.wraps(original_init)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        original_init(**_for_a_cpu(original_init, args, kwargs))
        given = _by_name(original_init, args, kwargs)
        backend = given.get("backend")
        recorder.gpu.bound = recorder.gpu.bound or given.get("device_id") is not None
        asked = cpu_groups.written(cpu_groups.user_frame() or sys._getframe(1), "backend", 0)
        recorder.barriers_by_gloo = "gloo" in asked.lower()
        # without both, gloo and NCCL
        if "cpu:" in str(backend) or (backend is None and given.get("device_id") is None):
            recorder.with_cpu.add("0")

    @functools.wraps(original_group)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        given = _for_a_cpu(original_group, args, kwargs)
        if is_user_file(sys._getframe(1).f_code.co_filename) and not given.get(
            "use_local_synchronization"
        ):
            ranks = given.get("ranks")
            given["ranks"] = ranks if ranks is None else list(ranks)
            members = range(dist.get_world_size()) if ranks is None else given["ranks"]
            recorder.note("group", call="new_group", text=str(sorted(map(int, members))))
        group, asked = (
            original_group(**given),
            str(_by_name(original_group, args, kwargs).get("backend") or "").lower(),
        )
        if "cpu:" in asked or (not asked and "0" in recorder.with_cpu):
            recorder.with_cpu.add(str(getattr(group, "group_name", "")))
        cpu_groups.note(group, asked)
        return group

    for name, wrapped in (("init_process_group", init_process_group), ("new_group", new_group)):
        for module in (c10d, dist):
            undo.append(functools.partial(setattr, module, name, getattr(module, name)))
            setattr(module, name, wrapped)
    return undo


def _by_name(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    return dict(inspect.signature(inspect.unwrap(function)).bind_partial(*args, **kwargs).arguments)


def _for_a_cpu(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call that makes a group, by name, for a CPU.

    They have gloo instead of NCCL, and nothing that only a GPU has.
    """
    given = _by_name(function, args, kwargs)
    # which does so itself
    if "nccl" in str(given.get("backend") or "").lower() and not gpu_stand_in.is_active():
        given.update(backend="gloo", pg_options=None)
    given.pop("device_id", None)
    return given
