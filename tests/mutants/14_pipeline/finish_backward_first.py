"""A backward does not need its own forward.

fails: finish/stuck
shows: a backward is before its own forward
points: 20
runs: finish
"""
# %% grade_id="finish"
def finish_times(orders, forward_s, backward_s, message_s=0.0):
    S = len(orders)
    done = {}
    ends = [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for r in range(S):
            while len(ends[r]) < len(orders[r]):
                kind, m = orders[r][len(ends[r])]
                start = ends[r][-1] if ends[r] else 0.0
                needs = []
                if kind == "F":
                    if r > 0:
                        needs.append((("F", m, r - 1), message_s))
                elif r < S - 1:
                        needs.append((("B", m, r + 1), message_s))
                if any(n not in done for n, _ in needs):
                    break
                start = max([start] + [done[n] + d for n, d in needs])
                end = start + (forward_s[r] if kind == "F" else backward_s[r])
                done[kind, m, r] = end
                ends[r].append(end)
                moved = True
    if any(len(e) < len(o) for e, o in zip(ends, orders)):
        raise ValueError("these orders can never be done")
    return ends
