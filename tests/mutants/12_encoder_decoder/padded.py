"""The sequences are padded, and the LSTM runs on over the padding; backwards it begins there.

fails: ragged/outputs, ragged/state
shows: The RNN went on over the padding
points: 10
"""
# %% grade_id="ragged"
# %%px --setup
def run_ragged(rnn, sequences, state=None):
    padded, state = rnn(pad_sequence(sequences), state)
    return [padded[:len(sequence), i] for i, sequence in enumerate(sequences)], state
