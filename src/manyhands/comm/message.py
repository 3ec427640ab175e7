"""What goes over the wire: a head that says what a message is, and the tensors themselves.

A head is one short byte string, a marshalled tuple, in which a few small tensors travel as well
(see `inline_limits`). Else payloads follow it: all small tensors together, then each larger one by
itself, straight from and into the memory of a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from ctypes import memmove, string_at
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from manyhands.comm.facts import Facts

# bytes of a tensor that follows the head together with other small ones: thousands of payloads take
# seconds
SMALL = 8192
SHOWN = 4  # tensors of a message that an error names

# what a message is for; its first item is "p2p", "collective", "gradient" or "control"
Key = tuple[Any, ...]
# of a tensor: its dtype's place in DTYPES, whether on a GPU, its shape
Spec = tuple[int, bool, tuple[int, ...]]

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
    torch.complex32,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
NUMBER = {dtype: i for i, dtype in enumerate(DTYPES)}


@dataclass(eq=False, slots=True)
class Message:
    """One message: from whom, what for, in which call, with which facts and tensors.

    `key` says what it is for. Among the tensors None stands for "no gradient".
    """

    source: int  # global rank
    key: Key
    call: str
    facts: Facts
    tensors: list[Any] = field(default_factory=list)  # torch.Tensor or None
    specs: list[Spec | None] = field(default_factory=list)

    def __str__(self) -> str:
        return describe_message(self.call, self.facts, self.specs)


def describe_message(call: str, facts: Mapping[str, Any], specs: Sequence[Spec | None]) -> str:
    """A message in words: `send, tag 3 with float32 (2, 3)`."""
    return (
        f"{call}{_facts(facts)} with "
        f"{describe([s and torch.empty(s[2], dtype=DTYPES[s[0]], device='meta') for s in specs])}"
    )


def _facts(facts: Mapping[str, Any]) -> str:
    return "".join(f", {name} {facts[name]}" for name in ("tag", "root") if name in facts)


def describe(tensors: Sequence[torch.Tensor | None]) -> str:
    """`float32 (2, 3)`: what an error message says of tensors."""
    words = [
        "nothing" if t is None else f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}"
        for t in tensors[:SHOWN]
    ]
    return (
        " and ".join(words + [f"{len(tensors) - SHOWN} more"] * (len(tensors) > SHOWN))
        or "no tensor"
    )


def check_tensor(x: object, call: str) -> None:
    """Raise ValueError unless x is a dense tensor with elements, of a dtype that can be sent.

    A tensor on the device meta has a shape but no elements.
    """
    if not isinstance(x, torch.Tensor):
        raise ValueError(
            f"{call}: a tensor is needed, not {type(x).__name__}. "
            "For other objects the communicator has calls that end in _obj."
        )
    if x.layout is not torch.strided:
        raise ValueError(
            f"{call}: a tensor with layout {x.layout} cannot be sent; use x.to_dense()."
        )
    if x.is_meta:
        raise ValueError(
            f"{call}: a tensor on the device meta has a shape but no elements, so it cannot be "
            "sent."
        )
    if x.dtype not in NUMBER:
        raise ValueError(f"{call}: tensors of dtype {x.dtype} cannot be sent.")


def measure(tensors: Sequence[torch.Tensor | None]) -> tuple[list[Spec | None], int]:
    """(what the receiver must know of each tensor to make room for it, the bytes of all).

    That is None, or its dtype, whether it is on a GPU, and its shape.
    """
    specs: list[Spec | None] = []
    total = 0
    for tensor in tensors:
        if tensor is None:
            specs.append(None)
        else:
            specs.append((NUMBER[tensor.dtype], tensor.is_cuda, tuple(tensor.shape)))
            total += tensor.nbytes
    return specs, total


def contiguous_on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its elements one after the other in CPU memory; a copy only if it must be."""
    if tensor.is_cpu and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's elements as a flat uint8 tensor in CPU memory; a view where that is possible."""
    flat = contiguous_on_cpu(tensor).detach().view(-1)
    if flat.numel() == 1:  # counts as contiguous with any stride: that of an expanded gradient is 0
        flat = flat.as_strided((1,), (1,))
    return flat.view(torch.uint8)


def nbytes(tensors: Sequence[torch.Tensor | None]) -> int:
    """The bytes of all tensors together; None counts as 0."""
    return sum([t.nbytes for t in tensors if t is not None])


def to_bytes(tensor: torch.Tensor | None) -> bytes:
    """The tensor's elements as a byte string; empty for None."""
    if tensor is None:
        return b""
    tensor = contiguous_on_cpu(tensor)
    return string_at(tensor.data_ptr(), tensor.nbytes)


def payloads(tensors: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """What follows a head: one tensor with the bytes of all small tensors, and the larger ones."""
    small = b"".join([to_bytes(t) for t in tensors if t is not None and t.nbytes <= SMALL])
    large = [t for t in tensors if t is not None and t.nbytes > SMALL]
    return [torch.frombuffer(bytearray(small), dtype=torch.uint8), *large] if small else large


def fetch_tensors(
    specs: Sequence[Spec | None],
    make: Callable[[Spec], torch.Tensor],
    fetch: Callable[[int, torch.Tensor], None],
) -> list[Any]:
    """The tensors of a message from their `payloads`.

    `make(spec)` makes the memory of a larger one, `fetch(index, tensor)` receives a payload.
    """
    tensors: list[torch.Tensor | None] = []
    lengths, index, small, start = [*map(spec_bytes, specs)], 0, b"", 0
    if together := sum([length for length in lengths if length <= SMALL]):
        raw = torch.empty(together, dtype=torch.uint8)
        fetch(index, raw)
        index, small = 1, raw.numpy().tobytes()
    for spec, length in zip(specs, lengths, strict=True):
        if spec is None or length <= SMALL:
            tensors.append(from_bytes(spec, small[start : start + length]))
            start += length
        else:
            tensors.append(large := make(spec))
            fetch(index, large)
            index += 1
    return tensors


def spec_bytes(spec: Spec | None) -> int:
    """The bytes of a tensor; 0 for None."""
    return 0 if spec is None else DTYPES[spec[0]].itemsize * math.prod(spec[2])


def make_buffer(spec: Spec) -> torch.Tensor:
    """An empty tensor in CPU memory."""
    return torch.empty(spec[2], dtype=DTYPES[spec[0]])


def from_bytes(spec: Spec | None, raw: bytes) -> torch.Tensor | None:
    """The tensor whose bytes `to_bytes` has returned; None for None."""
    if spec is None:
        return None
    tensor = make_buffer(spec)
    memmove(tensor.data_ptr(), raw, len(raw))
    return tensor
