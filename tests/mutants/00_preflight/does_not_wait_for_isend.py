"""The request of isend is thrown away, and the message with it if the other side is late.

fails: exchange/four, exchange/smaller, exchange/messages
shows: keep what isend returns, and call its wait()
points: 7
"""
# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    place = members.index(dist.get_rank())
    received = torch.empty_like(value)
    dist.isend(value, dst=members[(place + 1) % len(members)])
    dist.recv(received, src=members[place - 1])
    return received
