"""The ring is turned round: each rank gets the value of the following one.

fails: exchange/four, exchange/smaller, exchange/messages
shows: Either the direction of the ring is reversed
points: 7
"""
# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    place = members.index(dist.get_rank())
    received = torch.empty_like(value)
    request = dist.isend(value, dst=members[place - 1])
    dist.recv(received, src=members[(place + 1) % len(members)])
    request.wait()
    return received
