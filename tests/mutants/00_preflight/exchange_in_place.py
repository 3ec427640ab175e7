"""The received numbers are written into value.

fails: exchange/four, exchange/smaller, exchange/messages
shows: exchange has changed `value`
points: 7
runs: exchange
"""
# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    place = members.index(dist.get_rank())
    following, previous = members[(place + 1) % len(members)], members[place - 1]
    received = torch.empty_like(value)
    request = dist.isend(value, dst=following)
    dist.recv(received, src=previous)
    request.wait()
    return value.copy_(received)
