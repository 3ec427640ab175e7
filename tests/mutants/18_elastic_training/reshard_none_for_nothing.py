"""None, where a rank has nothing to read.

fails: reshard/pieces, reshard/least
shows: which is empty if nothing is to be read
points: 23
"""
# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine = math.ceil(numbers / old), math.ceil(numbers / new)
    first, last = rank * mine, min(numbers, (rank + 1) * mine)
    if first >= numbers:
        return None
    found = []
    for one in range(old):
        start, stop = max(first, one * size), min(last, (one + 1) * size)
        if start < stop:
            found.append((one, start - one * size, stop - one * size))
    return found
