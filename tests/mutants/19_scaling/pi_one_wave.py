"""Forward and backward of a stage are taken for one event.

fails: pipeline/pipeline
shows: GPipe has two waves
points: 17
"""
# %% grade_id="pipeline"
def pipeline_s(forward_s, backward_s, micro_batches):
    both = [a + b for a, b in zip(forward_s, backward_s)]
    return sum(both) + (micro_batches - 1) * max(both)
