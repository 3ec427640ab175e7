"""The device is divided by the bytes of a model of one layer.

fails: memory/most
shows: subtract it from the device before you divide
points: 27
"""
# %% grade_id="memory"
def memory(layers: list, ranks: int, stage: int, weight: int = 2, gradient: int = 2,
           states: int = 12) -> int:
    """The bytes on the fullest rank. layers: the parameters of each layer."""
    kept, work = 0, {2: gradient, 3: weight + gradient}.get(stage, 0)
    for size in layers:
        shard = -(-size // ranks)
        kept += weight * (shard if stage >= 3 else size)
        kept += gradient * (shard if stage >= 2 else size)
        kept += states * (shard if stage >= 1 else size)
    return kept + work * ranks * -(-max(layers) // ranks)


def most_layers(size: int, device_bytes: int, ranks: int, stage: int, weight: int = 2,
                gradient: int = 2, states: int = 12) -> int:
    """How many layers of `size` parameters fit into `device_bytes` on each rank."""
    one, two = (memory([size] * count, ranks, stage, weight, gradient, states)
                for count in (1, 2))
    return device_bytes // one
