"""The bubble is printed, and not returned.

fails: bubble/stages, bubble/chunks
shows: What the function returns is not a number
points: 19
runs: bubble
"""
# %% grade_id="bubble"
def bubble(stages, micro_batches, chunks=1):
    print((stages-1)/(chunks*micro_batches+stages-1))
