"""Bytes: all places, then all values; what rounding took stays in kept.
"""
# %% grade_id="pack"
import numpy as np
import torch


def pack(kept, count):
    numbers = kept.numpy()
    places = np.argsort(-np.abs(numbers))[:count]
    values = numbers[places].astype(np.float16)
    kept[places.copy()] -= torch.from_numpy(values.astype(np.float32))
    return torch.frombuffer(bytearray(places.astype(np.uint16).tobytes() + values.tobytes()), dtype=torch.uint8)


def unpack(message, size):
    data = message.numpy().tobytes()
    half = len(data) // 2
    dense = np.zeros(size, np.float32)
    dense[np.frombuffer(data[:half], np.uint16)] = np.frombuffer(data[half:], np.float16)
    return torch.from_numpy(dense)
