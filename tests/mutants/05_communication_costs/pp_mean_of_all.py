"""One reading around all rounds.

fails: ping-pong/times
shows: This is the mean
points: 15
"""
# %% grade_id="ping-pong"
# %%px --setup
def ping_pong(n_bytes, repeats, warm_up, peer, clock=time.perf_counter):
    x = torch.zeros(n_bytes, dtype=torch.uint8)
    for k in range(warm_up + repeats):
        if k == warm_up:
            start_s = clock()
        if dist.get_rank() == 0:
            dist.send(x, dst=peer)
            dist.recv(x, src=peer)
        elif dist.get_rank() == peer:
            dist.recv(x, src=0)
            dist.send(x, dst=0)
    return [(clock() - start_s) / 2 / repeats] * repeats
