"""Even ranks send first, odd ranks receive first; with an odd number of ranks the last one finds its turn.

"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    def send():
        dist.send(x, group=group, group_dst=(me + 1) % size)

    def receive():
        dist.recv(came, group=group, group_src=(me - 1) % size)

    for call in (send, receive) if me % 2 == 0 else (receive, send):
        call()
    return came
