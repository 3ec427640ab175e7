"""The neighbours are counted in the world: right for all four ranks, and a hang in smaller rings.

fails: exchange/smaller, exchange/messages
shows: Who waits for whom
points: 8
"""
# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    received = torch.empty_like(value)
    request = dist.isend(value, dst=(rank + 1) % world_size)
    dist.recv(received, src=(rank - 1) % world_size)
    request.wait()
    return received
