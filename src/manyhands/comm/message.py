"""What goes over the wire: a head that says what a message is, and the tensors themselves.

A head is one short byte string: a mark, its length, a marshalled tuple, and, if they are small, the tensors' bytes. Larger tensors
follow as messages of their own, straight from and into the memory of a tensor.
"""

import functools
import marshal
import math
import struct
from ctypes import memmove, string_at
from dataclasses import dataclass, field

import torch

HEAD_BYTES = 9216  # the longest head with its small tensors
INLINE_BYTES = 8192  # tensors that are no larger than this in sum travel inside the head
MARK = struct.Struct("<BII")  # a byte that is not zero, length of all that follows, length of the marshalled tuple

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
          torch.bool, torch.complex64, torch.complex128, torch.complex32, torch.uint16, torch.uint32, torch.uint64,
          torch.float8_e4m3fn, torch.float8_e5m2]
NUMBER = {dtype: i for i, dtype in enumerate(DTYPES)}


@dataclass(eq=False, slots=True)
class Message:
    """One message: from whom, what for (`key`), in which call, with which facts, and its tensors (None stands for "no gradient")."""

    source: int  # global rank
    key: tuple
    call: str
    facts: dict
    tensors: list = field(default_factory=list)
    specs: tuple = ()

    def __str__(self):
        return told(self.call, self.facts, self.specs)


def told(call, facts, specs):
    """A message in words: `send, tag 3 with float32 (2, 3)`."""
    return f"{call}{_facts(facts)} with {describe([s and torch.empty(s[2], dtype=DTYPES[s[0]], device='meta') for s in specs])}"


def _facts(facts):
    return "".join(f", {name} {facts[name]}" for name in ("tag", "root") if name in facts)


def describe(tensors):
    """`float32 (2, 3)`: what an error message says of tensors."""
    return " and ".join("nothing" if t is None else f"{str(t.dtype).removeprefix('torch.')} {tuple(t.shape)}" for t in tensors) or "no tensor"


def measured(tensors):
    """What the receiver must know of each to make room (None, or dtype, whether it lies on a GPU, shape), and the bytes of all."""
    specs = tuple([None if t is None else (NUMBER[t.dtype], t.is_cuda, tuple(t.shape)) for t in tensors])
    return specs, nbytes(tensors)


def plain(tensor):
    """The tensor, if its elements stand one after the other in CPU memory; else a copy for which this holds."""
    if tensor.is_cpu and tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()


def as_bytes(tensor):
    """The tensor's elements as a flat uint8 tensor in CPU memory; a view where that is possible."""
    flat = plain(tensor).detach().view(-1)
    if flat.numel() == 1:  # counts as contiguous with any stride: that of an expanded gradient is 0
        flat = flat.as_strided((1,), (1,))
    return flat.view(torch.uint8)


def nbytes(tensors):
    return sum(t.nbytes for t in tensors if t is not None)


def sizes(specs):
    """Bytes of each tensor, by its spec; 0 where there is none."""
    return [0 if s is None else math.prod(s[2]) * _itemsize(s[0]) for s in specs]


@functools.cache
def _itemsize(number):
    return torch.empty((), dtype=DTYPES[number]).element_size()


def copied(tensor):
    """The tensor's elements as a byte string."""
    tensor = plain(tensor)
    return string_at(tensor.data_ptr(), tensor.nbytes)


def pack(head, small=()):
    """The head as bytes, with the small tensors behind it."""
    text = marshal.dumps(head)
    body = b"".join([text, *map(copied, small)])
    return MARK.pack(1, len(body), len(text)) + body


def unpack(raw):
    """The head and, behind it, the bytes of its small tensors."""
    _, length, text = MARK.unpack_from(raw)
    view, start = memoryview(raw), MARK.size
    return marshal.loads(view[start:start + text]), bytes(view[start + text:start + length])


def read_small(specs, raw):
    """The tensors whose bytes stand in `raw` one after the other."""
    tensors, start = [], 0
    for one, size in zip(specs, sizes(specs)):
        tensors.append(one and make_room(one))
        if size:
            memmove(tensors[-1].data_ptr(), raw[start:start + size], size)
            start += size
    return tensors


def make_room(spec):
    """An empty tensor in CPU memory for one that follows the head."""
    return torch.empty(spec[2], dtype=DTYPES[spec[0]])
