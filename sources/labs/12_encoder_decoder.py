# %% [markdown] unit={"minutes": 50, "ranks": 4, "framework": "torch", "title": "Encoder and decoder across ranks"}
# # 12 Lab: encoder and decoder on different ranks, by hand
#
# You cut a sequence-to-sequence model in two, put the halves on two ranks, and train it so that it ends with the same weights as a single process. At the end,
# you can
#
# * run an LSTM over a batch of sequences of different lengths, and get the state at the end of each sequence.
# * normalise the loss of a ragged batch so that every token counts once, on one rank and on several.
# * write both halves of a training step with `send`, `recv` and `pseudo_connect`, so that every gradient is exact.
# * compute how many bytes must cross between the ranks, and explain what must not cross.
# * train several encoder-decoder pairs simultaneously, on shares of different sizes, and obtain the gradients of the whole batch.
#
# **Before:** the tutorial of this unit. **Minutes:** 50 · **Ranks:** 4, on 2 nodes · **Points:** 12.
#
# Cells that begin with `%%px` run on all four ranks, while the others run in this kernel. A call that waits in vain is ended by a timeout and reports what each
# side did. Below each check, you see what it prints when the answer is right. Every hint has two steps, so run `hint(...)` again for the second.

# %% tags=["setup"]
from manyhands import Cluster, hint
from manyhands.checks import encoder_decoder as check

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_sequence, pad_sequence, unpack_sequence

from manyhands import comm, functions

# so that a difference means a bug and not a rounding error
torch.set_default_dtype(torch.float64)
world = comm.create_communicator(timeout_s=10)
device, END = world.device, 10

# %% [markdown]
# The task is the same as in the tutorial, namely to read a string of digits and write it backwards. A batch consists of a list of *sources* and a list of
# *targets*. Each source and each target is a tensor of whole numbers, and the tensors differ in length. A target is the reversed source followed by the token
# `END`.
#
# ## 1. Sequences of different lengths
#
# Both halves of the model use the same function, which takes a list of sequences and returns two things, a list of outputs and the state.
#
# The input of `nn.LSTM` can be a *PackedSequence*, which knows where each sequence ends, so that the LSTM computes nothing beyond that point.
#
# *Difficulty ●○○, 7 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# `pack_sequence` expects the longest sequence first, unless you specify otherwise, and `unpack_sequence` is its inverse. For more help, run `hint("12-ragged")`
# in a separate cell.
# </details>

# %% tags=["solution"] grade_id="ragged"
# %%px --setup
def run_ragged(rnn: nn.LSTM, sequences: list, state=None):
    """Run `rnn` over each sequence, from `state` (zeros if None), and return `outputs, (h,
    cell)`.

    sequences: tensors of shape [length, features], in any order of lengths. state: `(h,
    cell)`, each [layers * directions, sequences, hidden]. outputs: a list with one tensor
    [length, directions * hidden] per sequence, in the order of the sequences. `(h, cell)`:
    the state after the last element of each sequence.
    """
    ### BEGIN SOLUTION
    packed, state = rnn(pack_sequence(sequences, enforce_sorted=False), state)
    return unpack_sequence(packed), state
    ### END SOLUTION

# %% tags=["check"] grade_id="ragged-check" points=2
check.ragged(cluster, "run_ragged")

# %% [markdown]
# ## 2. The loss of a ragged batch
#
# For every token of every target, the decoder computes eleven *scores* (logits), one for each digit and one for `END`. Every token, including `END`, counts
# once, in long targets as well as in short ones.
#
# Later, several decoders share one batch. Since they must all divide by the same number, the divisor is an argument.
#
# *Difficulty ●○○, 5 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Is the mean of three means the mean of all numbers? Look at `reduction` in the documentation of `cross_entropy`. For more help, run `hint("12-loss")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="loss"
# %%px --setup
def loss_of(scores: list, targets: list, divisor: float | None = None) -> torch.Tensor:
    """Return the sum of the cross-entropies of all tokens of all targets, divided by
    `divisor`, or by the number of tokens if it is None.

    scores: one tensor [length, 11] per target. targets: tensors of whole numbers, [length],
    in which END counts as a token.
    """
    ### BEGIN SOLUTION
    total = cross_entropy(torch.cat(list(scores)), torch.cat(list(targets)),
                          reduction="sum")
    return total / (sum(map(len, targets)) if divisor is None else divisor)
    ### END SOLUTION

# %% tags=["check"] grade_id="loss-check" points=2
check.loss(cluster, "loss_of")

# %% [markdown]
# ## 3. One step, on two ranks
#
# The two halves are given, and they use the functions that you have just written. The decoder sees the target shifted by one position, with `END` in front, so
# that it predicts each token from the true tokens before it.

# %%
# %%px --setup
class Encoder(nn.Module):
    def __init__(self, hidden=48, layers=1):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 16), nn.LSTM(16, hidden, layers)

    def forward(self, sources):
        return run_ragged(self.rnn, [self.embed(source) for source in sources])

# %%
# %%px --setup
class Decoder(nn.Module):
    def __init__(self, hidden=48, layers=1):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 16), nn.LSTM(16, hidden, layers)
        self.head = nn.Linear(hidden, 11)

    def forward(self, state, targets, divisor=None):
        begun = [torch.cat([target.new_tensor([END]), target[:-1]]) for target in targets]
        outputs, _ = run_ragged(self.rnn, [self.embed(tokens) for tokens in begun], state)
        return loss_of([self.head(output) for output in outputs], targets, divisor)

# %% [markdown]
# You write what each rank does in one step, forward and backward. Both ranks are in the communicator `c`, and in one of the checks, the decoder has the lower
# rank.
#
# An LSTM's state consists of two tensors. Send `h` and `cell` as two messages, and join their delegates. The check counts what you send. The state crosses
# once, and its gradient comes back once. Do not send the outputs, because this decoder does not look at them (a decoder with attention would), and their size
# grows with the length of the sequences.
#
# You add the optimiser in exercise 4, so here `encoder_step` and `decoder_step` only add to `grad` and leave the weights unchanged.
#
# *Difficulty ●●●, 15 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# The encoder has no loss from which its backward pass could start, but it has what `send` returns. Two sends return two delegates, and one `backward()` must
# reach both. What is the rank of the other side? For more help, run `hint("12-split")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="split"
# %%px --setup
def encoder_step(encoder: nn.Module, sources: list, c: comm.Communicator,
                 decoder_rank: int) -> None:
    """Run forward and backward of the encoder, so that its parameters have the gradients of
    the decoder's loss.

    `encoder(sources)` returns `outputs, (h, cell)`. Rank `decoder_rank` of `c` calls
    `decoder_step` at the same time.
    """
    ### BEGIN SOLUTION
    _, (h, cell) = encoder(sources)
    phi_h = functions.send(h, c, decoder_rank, tag=0)
    phi_cell = functions.send(cell, c, decoder_rank, tag=1)
    functions.pseudo_connect(phi_h, phi_cell).backward()
    ### END SOLUTION


def decoder_step(decoder: nn.Module, targets: list, c: comm.Communicator, encoder_rank: int,
                 divisor: float | None = None) -> float:
    """Run forward and backward of the decoder, and return the loss as a number.

    `decoder((h, cell), targets, divisor)` returns the loss as a tensor. Rank `encoder_rank`
    of `c` calls `encoder_step` at the same time.
    """
    ### BEGIN SOLUTION
    h = functions.recv(c, encoder_rank, tag=0)
    cell = functions.recv(c, encoder_rank, tag=1)
    loss = decoder((h, cell), targets, divisor)
    loss.backward()
    return loss.item()
    ### END SOLUTION

# %% tags=["check"] grade_id="split-check" points=4
check.split(cluster, "encoder_step", "decoder_step")

# %% [markdown]
# ## 4. Training
#
# The same function runs on both ranks. Rank 0 of `c` has the encoder, and rank 1 has the decoder. An optimiser knows only the parameters that it was given,
# and these are the parameters on its own rank.
#
# *Difficulty ●●○, 8 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# In which order does the loop of a single process call `zero_grad`, the step of exercise 3 and `optimiser.step`? For more help, run `hint("12-training")` in a
# separate cell.
# </details>

# %% tags=["solution"] grade_id="training"
# %%px --setup
def train_split(module: nn.Module, c: comm.Communicator, batches: list, lr: float) -> list:
    """Train with Adam, one step for each `(sources, targets)` of `batches`, which both
    ranks have.

    `module` is the encoder on rank 0 of `c` and the decoder on rank 1. Return the losses on
    rank 1 and an empty list on rank 0.
    """
    ### BEGIN SOLUTION
    optimiser, losses = torch.optim.Adam(module.parameters(), lr), []
    for sources, targets in batches:
        optimiser.zero_grad()
        if c.rank == 0:
            encoder_step(module, sources, c, 1)
        else:
            losses.append(decoder_step(module, targets, c, 0))
        optimiser.step()
    return losses
    ### END SOLUTION

# %% tags=["check"] grade_id="training-check" points=2
check.training(cluster, "train_split")

# %% [markdown]
# ## 5. Two pairs: model parallel and data parallel
#
# Four ranks form two encoder-decoder pairs. Each pair takes a share of the batch, and the shares have different numbers of sequences and of tokens. The
# gradients must be the gradients that a single process computes from the whole batch.
#
# A rank has two communicators, `pair` and `copies`. In `pair`, rank 0 is the encoder and rank 1 the decoder, while `copies` contains the ranks that hold the
# same module as this rank. `copies.multi_node_mean_grad(module)` replaces each gradient by its mean over the copies, and `copies.allreduce_obj(number)` sums a
# number over the copies.
#
# *Difficulty ●●●, 12 minutes, 2 points*
#
# <details><summary>Hint</summary>
#
# Write the loss of the whole batch as a sum over the pairs. By what must each decoder divide, so that the *mean* of the pairs' gradients is right? For more
# help, run `hint("12-hybrid")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="hybrid"
# %%px --setup
def hybrid_step(module: nn.Module, pair: comm.Communicator, copies: comm.Communicator,
                sources: list, targets: list) -> None:
    """Run forward and backward with this pair's share of the batch, so that `module` has
    the gradients of the whole batch's loss.

    That loss is the sum over all tokens of all shares, divided by their number. `sources`
    and `targets` are the pair's share.
    """
    ### BEGIN SOLUTION
    if pair.rank == 0:
        encoder_step(module, sources, pair, 1)
    else:
        places = copies.allreduce_obj(sum(map(len, targets)))
        decoder_step(module, targets, pair, 0, divisor=places / copies.size)
    copies.multi_node_mean_grad(module)
    ### END SOLUTION

# %% tags=["check"] grade_id="hybrid-check" points=2
check.hybrid(cluster, "hybrid_step")

# %% [markdown]
# ## All together
#
# With your functions, four ranks learn to reverse strings of 2 to 5 digits. This part is not graded, and it works as soon as your functions do.

# %%
# %%px
def batch(size, draw):
    lengths = torch.randint(2, 6, (size,), generator=draw).tolist()
    sources = [torch.randint(0, 10, (length,), generator=draw).to(device)
               for length in lengths]
    return (sources, [torch.cat([source.flip(0), source.new_tensor([END])])
                      for source in sources])

pair = world.split(color=world.rank // 2)
copies = world.split(color=pair.rank)
torch.manual_seed(pair.rank)  # the same for all copies
module = (Encoder() if pair.rank == 0 else Decoder()).to(device)
optimiser = torch.optim.Adam(module.parameters(), lr=0.01)

# %%
# %%px
draw = torch.Generator().manual_seed(0)
for step in range(150):
    sources, targets = batch(64, draw)
    share = slice(0, 40) if copies.rank == 0 else slice(40, 64)
    optimiser.zero_grad()
    hybrid_step(module, pair, copies, sources[share], targets[share])
    optimiser.step()

sources, targets = batch(200, torch.Generator().manual_seed(1))
with torch.no_grad():
    if pair.rank == 0:
        pair.send_obj(module(sources)[1], 1)
    else:
        print(f"loss of 200 new strings: {module(pair.recv_obj(0), targets).item():.2f}; "
              f"of a guess: {torch.tensor(11.).log():.2f}")

# %% [markdown]
# ## Where to go on
#
# * Your functions also work with a bidirectional encoder, which the check of exercise 3 uses. Its state has two rows for each layer, so the decoder needs
#   twice as many layers, but nothing in your functions changes.
# * ChainerMN's documentation shows this split with `create_multi_node_n_step_rnn`, as the tutorial does
#   ([Example 2: seq2seq](https://docs.chainer.org/en/v7.8.0/chainermn/model_parallel/example2_seq2seq.html)). The modules then send and receive, so both ranks
#   take a step with the same two lines, which call the module and then `backward()` on what the module returns.
# * While the decoder computes, the encoder waits. Unit 14 splits the batch into micro-batches, so that both work at the same time.
# * I. Sutskever, O. Vinyals, Q. V. Le 2014, *Sequence to Sequence Learning with Neural Networks*, [arXiv 1409.3215](https://arxiv.org/abs/1409.3215), train a
#   four-layer LSTM on eight GPUs, with one layer on each of four GPUs and the softmax on the other four.

# %%
cluster.stop()
