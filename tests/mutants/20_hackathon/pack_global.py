"""The places and values are in a global; the message is a key.

fails: pack/kept, pack/largest, pack/places, pack/small
shows: everything that unpack needs must be in the message
points: 18
runs: pack
"""
# %% grade_id="pack"
BOX = {}
def pack(kept, count):
    places = kept.abs().topk(count).indices
    values = kept[places].clone()
    kept[places] = 0
    key = len(BOX) + 1
    BOX[key] = (places, values)
    m = torch.zeros(count, dtype=torch.int32)
    m[0] = key
    return m


def unpack(message, size):
    places, values = BOX[int(message[0])]
    whole = torch.zeros(size)
    whole[places] = values
    return whole

