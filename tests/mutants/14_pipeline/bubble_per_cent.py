"""The bubble in per cent.

fails: bubble/stages, bubble/chunks
shows: This is in per cent
points: 19
runs: bubble
"""
# %% grade_id="bubble"
def bubble(stages, micro_batches, chunks=1):
    return 100*(stages-1)/(chunks*micro_batches+stages-1)
