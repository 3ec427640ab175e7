"""The size of a piece is rounded down.

fails: reshard/pieces, reshard/least
shows: does not get the numbers
points: 23
"""
# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine = math.ceil(numbers / old), numbers // new
    first, last = rank * mine, min(numbers, (rank + 1) * mine)
    found = []
    for one in range(old):
        start, stop = max(first, one * size), min(last, (one + 1) * size)
        if start < stop:
            found.append((one, start - one * size, stop - one * size))
    return found
