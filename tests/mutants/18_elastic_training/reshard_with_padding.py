"""The padding of the old pieces is taken for numbers.

fails: reshard/pieces, reshard/least
shows: There is padding among the numbers
points: 23
"""
# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine = math.ceil(numbers / old), math.ceil(numbers / new)
    first, last = rank * mine, min(old * size, (rank + 1) * mine)
    found = []
    for one in range(old):
        start, stop = max(first, one * size), min(last, (one + 1) * size)
        if start < stop:
            found.append((one, start - one * size, stop - one * size))
    return found
