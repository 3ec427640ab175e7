"""How a parameter is cut over the ranks (DTensor), as plain values; the whole from its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor

    from manyhands.clinic.records import Placement, Shard


def shard_of(parameter: DTensor, data_mesh: DeviceMesh | None) -> Shard:
    """Describe how a parameter is cut, as plain values.

    {"placements": of each dimension of the mesh, "mesh": its ranks, "data": its dimensions over
    which the rows are divided (FSDP), "shape": of the whole}.
    """
    mesh = parameter.device_mesh
    if data_mesh is None:
        data = []
    elif data_mesh.ndim == mesh.ndim:
        data = list(range(mesh.ndim))
    else:
        names = data_mesh.mesh_dim_names or ()
        data = [place for place, name in enumerate(mesh.mesh_dim_names or ()) if name in names]
    return {
        "placements": placements_of(parameter),
        "mesh": mesh.mesh.tolist(),
        "data": data,
        "shape": tuple(parameter.shape),
    }


def placements_of(tensor: Any) -> list[Placement]:
    """The placements of a DTensor; those of a gradient may differ from those of its parameter."""
    return [_plain(placement) for placement in tensor.placements]


def _plain(placement: Any) -> Placement:
    """("shard", dimension, strided), ("whole",) or ("partial", the operation that completes it)."""
    if placement.is_replicate():
        return ("whole",)
    if placement.is_partial():
        return ("partial", placement.reduce_op)
    return ("shard", placement.dim, "Strided" in type(placement).__name__)


def watch_placing(note: Callable[[Literal["whole", "shard"]], object]) -> None:
    """Call `note` with how each tensor that is handed to DTensor is declared.

    That is "whole" on every rank, or "shard".
    """
    from torch.distributed.tensor import DTensor

    from_local = DTensor.from_local

    def noted(
        tensor: torch.Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> DTensor:
        note(
            "whole"
            if placements and all(placement.is_replicate() for placement in placements)
            else "shard"
        )
        return from_local(tensor, device_mesh, placements, **kwargs)

    # torch's own is replaced
    DTensor.from_local = staticmethod(noted)  # type: ignore[method-assign,assignment]


def data_parallel_meshes(module: nn.Module) -> dict[int, DeviceMesh]:
    """{id of a parameter: the mesh over which FSDP2 shards it}."""
    meshes: dict[int, DeviceMesh] = {}
    for part in module.modules():
        state = cast(Any, part)._get_fsdp_state() if hasattr(part, "_get_fsdp_state") else None
        groups = getattr(state, "_fsdp_param_groups", None) or [
            getattr(state, "_fsdp_param_group", None)
        ]
        for group in groups:
            for parameter in getattr(group, "fsdp_params", ()):
                meshes[id(parameter.sharded_param)] = group.mesh_info.mesh
    return meshes


def computes_in_short_type(module: nn.Module) -> bool:
    """Whether FSDP2 computes this model in a shorter type than that of its weights."""
    return any(
        getattr(getattr(cast(Any, part)._get_fsdp_state(), "_mp_policy", None), "param_dtype", None)
        is not None
        for part in module.modules()
        if hasattr(part, "_get_fsdp_state")
    )


def cut_groups(shard: Shard) -> list[list[int]]:
    """Return the groups of ranks among which this parameter is cut otherwise than by FSDP.

    Each is a list of ranks.
    """
    import torch

    mesh = torch.tensor(shard["mesh"])
    other = [place for place in range(mesh.dim()) if place not in shard["data"]]
    if not other or all(shard["placements"][place] == ("whole",) for place in other):
        return []
    size = 1
    for place in other:
        size *= mesh.shape[place]
    return mesh.permute(*shard["data"], *other).reshape(-1, size).tolist()


def groups_with_same_part(shards: Sequence[Shard | None]) -> list[list[int]]:
    """The groups of ranks that hold the same part of a parameter, each of two ranks or more.

    `shards` says by rank how it is cut there (None: not at all); a mesh may hold some of the ranks
    only.
    """
    groups: dict[object, list[int]] = {}
    for rank, shard in enumerate(shards):
        groups.setdefault(_part_on(rank, shard), []).append(rank)
    return [group for group in groups.values() if len(group) > 1]


def _part_on(rank: int, shard: Shard | None) -> tuple[tuple[Placement, int], ...] | None:
    import torch

    if shard is None:
        return None
    (where,) = (torch.tensor(shard["mesh"]) == rank).nonzero().tolist()
    return tuple(
        (placement, place)
        for placement, place in zip(shard["placements"], where, strict=True)
        if placement != ("whole",)
    )


def join_parts(parts: Mapping[int, torch.Tensor], shard: Shard | None) -> torch.Tensor | None:
    """The whole of a parameter from {rank: its part}; None where that is not known."""
    import torch

    if shard is None:
        return parts[min(parts)]
    mesh = torch.tensor(shard["mesh"])
    unknown = any(
        placed[0] == "partial" and placed[1] not in ("sum", "avg") for placed in shard["placements"]
    )
    if unknown or any(rank not in parts for rank in mesh.flatten().tolist()):
        return None
    places = list(range(mesh.dim()))
    strided = [place for place in places if shard["placements"][place][-1] is True]
    pieces: dict[tuple[int, ...], torch.Tensor] = {
        tuple(int(i) for i in (mesh == rank).nonzero()[0]): part
        for rank, part in parts.items()
        if (mesh == rank).any()
    }
    for place in [
        *strided,
        *reversed([dimension for dimension in places if dimension not in strided]),
    ]:
        left: dict[tuple[int, ...], list[torch.Tensor]] = {}
        placement = shard["placements"][place]
        for where in sorted(pieces):
            left.setdefault((*where[:place], 0, *where[place + 1 :]), []).append(pieces[where])
        pieces = {
            where: _put_together(parts_there, placement) for where, parts_there in left.items()
        }
    (whole,) = pieces.values()
    return whole if whole.numel() == _numel(shard["shape"]) else None


def _put_together(parts: list[torch.Tensor], placement: Placement) -> torch.Tensor:
    import torch

    if placement[0] == "shard":
        return torch.cat([part for part in parts if part.numel()] or parts, placement[1])
    if placement[0] == "partial":
        # of one part or more
        return cast("torch.Tensor", sum(parts)) / (len(parts) if placement[1] == "avg" else 1)
    return parts[0]


def _numel(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
