"""The package's simulated training step gives the answer.

fails: pipeline/pipeline
shows: this is the package's own answer
points: 17
runs: pipeline
"""
# %% grade_id="pipeline"
from manyhands.simulate.training_step import Layer, Machine, Way, step
def pipeline_s(forward_s, backward_s, micro_batches):
    layers = [Layer(0.0, f * micro_batches, b * micro_batches) for f, b in zip(forward_s, backward_s)]
    layers = [Layer(0.0, f, b) for f, b in zip(forward_s, backward_s)]
    machine = Machine(len(layers), (0.0, 1e30), (0.0, 1e30))
    return step(machine, layers, Way(stages=len(layers), micro_batches=micro_batches, schedule="gpipe")).seconds
