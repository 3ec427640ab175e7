"""Rank 1 plays, whoever was asked for.

fails: ping-pong/messages
shows: Rank 0 plays with `peer`
points: 16
"""
# %% grade_id="ping-pong"
# %%px --setup
def ping_pong(n_bytes, repeats, warm_up, peer, clock=time.perf_counter):
    x, times_s = torch.zeros(n_bytes, dtype=torch.uint8), []
    for _ in range(warm_up + repeats):
        if dist.get_rank() == 0:
            start_s = clock()
            dist.send(x, dst=1)
            dist.recv(x, src=1)
            times_s.append((clock() - start_s) / 2)
        elif dist.get_rank() == 1:
            dist.recv(x, src=0)
            dist.send(x, dst=0)
    return times_s[warm_up:] if dist.get_rank() == 0 else None
