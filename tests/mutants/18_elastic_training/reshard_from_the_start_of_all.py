"""The reads are counted from the first number of all, not of the piece.

fails: reshard/pieces, reshard/least
shows: is outside that piece
points: 23
"""
# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine = math.ceil(numbers / old), math.ceil(numbers / new)
    first, last = rank * mine, min(numbers, (rank + 1) * mine)
    found = []
    for one in range(old):
        start, stop = max(first, one * size), min(last, (one + 1) * size)
        if start < stop:
            found.append((one, start, stop))
    return found
