"""S forwards are waited for, and not S - 1.

fails: bubble/stages, bubble/chunks
shows: There are S - 1 forwards
points: 19
"""
# %% grade_id="bubble"
def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """The part of a step, 0 to 1, in which a rank waits. `stages`: of one chunk, so as many as there are ranks."""
    return stages / (chunks * micro_batches + stages)
