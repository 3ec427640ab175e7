"""Places from 32,768 on are negative.

fails: pack/places
shows: 16 bits with a sign end at 32,767
points: 21
"""
# %% grade_id="pack"
import torch


def pack(kept, count):
    places = kept.abs().topk(count).indices
    values = kept[places].half()
    kept[places] -= values.float()
    return torch.stack([places.to(torch.int16), values.view(torch.int16)])


def unpack(message, size):
    places, values = message
    dense = torch.zeros(size)
    dense[places.int()] = values.view(torch.float16).float()
    return dense
