"""Each number is a read of its own.

fails: reshard/least
shows: so one read is enough
points: 25
"""
# %% grade_id="reshard"
def reads(numbers, old, new, rank):
    size, mine = math.ceil(numbers / old), math.ceil(numbers / new)
    first, last = rank * mine, min(numbers, (rank + 1) * mine)
    return [(i // size, i % size, i % size + 1) for i in range(first, last)]
