"""What was not sent is forgotten.

fails: pack/kept
shows: What was not sent is lost
points: 21
"""
# %% grade_id="pack"
import torch


def pack(kept, count):
    places = kept.abs().topk(count).indices
    values = kept[places].half()
    kept[:] = 0
    return torch.stack([places.to(torch.int16), values.view(torch.int16)])


def unpack(message, size):
    places, values = message
    dense = torch.zeros(size)
    dense[places.int() & 0xFFFF] = values.view(torch.float16).float()
    return dense
