"""Rank 0 sends first, which is of no use in a ring without rank 0.

fails: exchange/smaller, exchange/messages
shows: waits to receive before it sends
points: 8
"""
# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    place = members.index(dist.get_rank())
    following, previous = members[(place + 1) % len(members)], members[place - 1]
    received = torch.empty_like(value)
    if dist.get_rank() == 0:
        dist.send(value, dst=following)
        dist.recv(received, src=previous)
    else:
        dist.recv(received, src=previous)
        dist.send(value, dst=following)
    return received
