"""What rounding takes from the values is lost.

fails: pack/kept
shows: what rounding has taken from it is lost
points: 21
runs: pack
"""
# %% grade_id="pack"
def pack(kept: torch.Tensor, count: int) -> torch.Tensor:
    """The count largest numbers and their places, in one tensor; they leave kept."""
    places = kept.abs().topk(count).indices
    values = kept[places].half()
    kept[places] = 0
    return torch.stack([places.to(torch.int16), values.view(torch.int16)])


def unpack(message: torch.Tensor, size: int) -> torch.Tensor:
    """A tensor of size numbers, with those that were packed where they were."""
    places, values = message
    dense = torch.zeros(size)
    dense[places.int() & 0xFFFF] = values.view(torch.float16).float()
    return dense
