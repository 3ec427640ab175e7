"""Every rank tells everybody and keeps one of the answers: the right values by too many messages.

fails: exchange/messages
shows: needs only one send and one recv
points: 9
"""
# %% grade_id="exchange"
# %%px --setup
def exchange(value, members):
    me = dist.get_rank()
    others = [other for other in members if other != me]
    received = {other: torch.empty_like(value) for other in others}
    requests = [dist.isend(value, dst=other) for other in others]
    for other in others:
        dist.recv(received[other], src=other)
    for request in requests:
        request.wait()
    return received[members[members.index(me) - 1]]
