"""The largest with their signs.

fails: pack/largest, pack/places
shows: how far a number is from 0
points: 20
"""
# %% grade_id="pack"
import torch


def pack(kept, count):
    places = kept.topk(count).indices
    values = kept[places].half()
    kept[places] -= values.float()
    return torch.stack([places.to(torch.int16), values.view(torch.int16)])


def unpack(message, size):
    places, values = message
    dense = torch.zeros(size)
    dense[places.int() & 0xFFFF] = values.view(torch.float16).float()
    return dense
