"""The sequences go through the package's own RNN.

fails: ragged/outputs, ragged/state
shows: this is the package's own answer, which is closed here, so write it yourself
points: 10
runs: ragged
"""
# %% grade_id="ragged"
# %%px --setup
def run_ragged(rnn: nn.LSTM, sequences: list, state=None):
    """Run `rnn` over each sequence, from `state` (zeros if None). Returns `outputs, (h,
    cell)`.

    sequences: tensors of shape [length, features], in any order of lengths. state: `(h,
    cell)`, each [layers * directions, sequences, hidden]. outputs: a list, one tensor
    [length, directions * hidden] per sequence, in their order. `(h, cell)`: the state after
    each one's last element.
    """
    from manyhands import links
    h0 = state or (None, None)
    h, cell, ys, _ = links.create_multi_node_n_step_rnn(rnn, world)(*h0, sequences)
    return ys, (h, cell)
