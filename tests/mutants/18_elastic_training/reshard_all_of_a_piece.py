"""Whole pieces are read wherever one number is wanted.

fails: reshard/pieces, reshard/least
shows: although it needs only
points: 23
"""
# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine = math.ceil(numbers / old), math.ceil(numbers / new)
    first, last = rank * mine, min(numbers, (rank + 1) * mine)
    return [(one, 0, size) for one in range(old) if max(first, one * size) < min(last, (one + 1) * size)]
