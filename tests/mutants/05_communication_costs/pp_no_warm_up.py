"""The warm-up is not played at all.

fails: ping-pong/messages, ping-pong/times
shows: The warm-up is missing
shows: its first, slow messages
points: 14
"""
# %% grade_id="ping-pong"
# %%px --setup
def ping_pong(n_bytes, repeats, warm_up, peer, clock=time.perf_counter):
    x, times_s = torch.zeros(n_bytes, dtype=torch.uint8), []
    for _ in range(repeats):
        if dist.get_rank() == 0:
            start_s = clock()
            dist.send(x, dst=peer)
            dist.recv(x, src=peer)
            times_s.append((clock() - start_s) / 2)
        elif dist.get_rank() == peer:
            dist.recv(x, src=0)
            dist.send(x, dst=0)
    return times_s if dist.get_rank() == 0 else None
