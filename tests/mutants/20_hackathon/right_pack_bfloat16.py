"""A place and a bfloat16 value in one number of 32 bits.

runs: pack
"""
# %% grade_id="pack"
def pack(kept, count):
    places = kept.abs().topk(count).indices
    values = kept[places].bfloat16()
    kept[places] -= values.float()
    return ((places.int() << 16) | (values.view(torch.int16).int() & 0xFFFF))

def unpack(message, size):
    places = (message >> 16) & 0xFFFF
    values = (message & 0xFFFF).to(torch.int16).view(torch.bfloat16)
    out = torch.zeros(size)
    out[places.long()] = values.float()
    return out
