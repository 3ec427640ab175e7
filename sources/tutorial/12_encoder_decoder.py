# %% [markdown] unit={"minutes": 50, "ranks": 4, "framework": "torch", "title": "Encoder and decoder across ranks"}
# # 12 Encoder and decoder across ranks
#
# A model that is too large for one device can be cut in two. In this unit, the cut is between an encoder and a decoder. At the end, you can
#
# * explain what must cross the cut in each direction during a step, and compute its size in bytes with and without attention.
# * write both halves of a training step with `send`, `recv` and `pseudo_connect`, and with two ready-made links.
# * show, step by step, that the split model trains as a single process does.
# * explain which rank waits for which, and why the cut saves memory (for weights and for activations) but no time.
# * run several encoder-decoder pairs side by side, on shares of different sizes, and obtain the gradients of the whole batch.
#
# **Before:** you can train an LSTM in PyTorch, and you know what a delegate variable is (unit 11). **Minutes:** 50 · **Ranks:** 4, on 2 nodes.

# %% [markdown]
# ## Four ranks, two pairs
#
# This kernel starts four ranks, and cells that begin with `%%px` run on all of them or, with `--ranks 0,1`, on ranks 0 and 1 only.
#
# The method `split` creates smaller communicators, each of which contains the ranks with the same colour. Here, ranks 0 and 1 are a pair, and so are ranks 2
# and 3. In each pair, rank 0 will have the encoder and rank 1 the decoder. At first, we use only the first pair.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=2, ranks_per_node=2, framework="torch")

# %% tags=["setup"]
# %%px --setup
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_sequence

from manyhands import comm, functions, links

torch.set_default_dtype(torch.float64)  # explained below, with the tolerance
world = comm.create_communicator(timeout_s=30)
pair = world.split(color=world.rank // 2)
device, END = world.device, 10

# %% [markdown]
# ## The task: write it backwards
#
# The *source* is a string of 2 to 5 digits. The *target* is the same string backwards, followed by a token that means *end*. A batch is a list of such strings.
# Since the strings differ in length, the batch is *ragged*.

# %% tags=["setup"]
# %%px --setup
def batch(size, draw):
    lengths = torch.randint(2, 6, (size,), generator=draw).tolist()
    sources = [torch.randint(0, 10, (length,), generator=draw).to(device)
               for length in lengths]
    return (sources, [torch.cat([source.flip(0), source.new_tensor([END])])
                      for source in sources])

# %%
# %%px --ranks 0
for source, target in zip(*batch(3, torch.Generator().manual_seed(0))):
    print(source.tolist(), "->", target.tolist())

# %% [markdown]
# The encoder reads the source and passes on only the final state of its LSTM. This state consists of two tensors, `h` and `cell`, which have the same size for
# a short string as for a long one. (As in ChainerMN's `NStepLSTM`, `h` comes first in PyTorch, although an article on ChainerMN unpacks the state as `c, h`.)
# Since `pack_sequence` tells the LSTM where each string ends, the LSTM computes nothing beyond that point.

# %% tags=["setup"]
# %%px --setup
class Encoder(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 16), nn.LSTM(16, hidden)

    def forward(self, sources):
        packed = pack_sequence([self.embed(source) for source in sources],
                               enforce_sorted=False)
        _, (h, cell) = self.rnn(packed)
        return h, cell

# %% [markdown]
# The decoder starts from the encoder's final state and predicts each token of the target from the *true* tokens before it (*teacher forcing*). The function
# `shifted` shifts the target by one position and uses `END` to mark the start, too. The decoder's loss is the sum of the cross-entropies of all tokens of all
# targets, divided by the number of tokens or by a `divisor` that we need later.

# %% tags=["setup"]
# %%px --setup
def shifted(targets):
    return [torch.cat([target.new_tensor([END]), target[:-1]]) for target in targets]

class Decoder(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(11, 16), nn.LSTM(16, hidden)
        self.head = nn.Linear(hidden, 11)

    def forward(self, state, targets, divisor=None):
        packed = pack_sequence([self.embed(tokens) for tokens in shifted(targets)],
                               enforce_sorted=False)
        outputs, _ = self.rnn(packed, state)
        tokens = pack_sequence(targets, enforce_sorted=False).data  # contains no padding
        return (cross_entropy(self.head(outputs.data), tokens, reduction="sum")
                / (divisor or len(tokens)))

# %% [markdown]
# ## In one process
#
# All experiments below use the same training loop, which takes a module and a function that performs the forward and backward passes and returns the loss. Each rank of the pair first trains the whole model by itself, so that we have a reference.

# %% tags=["setup"]
# %%px --setup
def parts():
    torch.manual_seed(0)
    return Encoder().to(device), Decoder().to(device)

curves, when = {}, {}  # the losses by name, and the moments of a step

def train(module, step, steps=100, batch=batch):
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    draw, losses = torch.Generator().manual_seed(0), []
    for _ in range(steps):
        optimiser.zero_grad()
        losses.append(step(module, *batch(64, draw)))
        optimiser.step()
    return losses

# %%
# %%px --ranks 0,1
def step_alone(model, sources, targets):
    encoder, decoder = model
    loss = decoder(encoder(sources), targets)
    loss.backward()
    return loss.item()

alone = nn.ModuleList(parts())
curves["one process"] = train(alone, step_alone)
if pair.rank == 1:
    print("loss at steps 1, 50, 100:", *(f"{curves['one process'][step]:.4f}"
                                         for step in (0, 49, 99)))

# %% [markdown]
# ## In two, by hand
#
# Now rank 0 has the encoder and rank 1 has the decoder. In the forward pass, the LSTM's state must cross to rank 1. It consists of two tensors, and we send
# each of them as a message with its own tag. (Further down, we send both tensors as a tuple in one message.) In the backward pass, the gradients of the two
# tensors come back.
#
# The encoder has no loss on which it could call `backward()`. Instead, it has the *delegate* that `send` returns, which is a zero whose backward pass waits for
# the gradient. Since there are two delegates, `pseudo_connect` joins them into one, so that one `backward()` reaches both.

# %% tags=["setup"]
# %%px --setup
def step_by_hand(module, sources, targets):
    if pair.rank == 0:
        h, cell = module(sources)
        phi_h = functions.send(h, pair, rank=1, tag=0)
        phi_cell = functions.send(cell, pair, rank=1, tag=1)
        functions.pseudo_connect(phi_h, phi_cell).backward()  # waits for both gradients
        return None
    h = functions.recv(pair, rank=0, tag=0)
    cell = functions.recv(pair, rank=0, tag=1)
    loss = module((h, cell), targets)
    loss.backward()  # sends both gradients
    return loss.item()

# %%
# %%px --ranks 0,1
def largest_gap(one, other):
    return max((a - b).abs().max().item()
               for a, b in zip(one.parameters(), other.parameters()))

by_hand = parts()[pair.rank]
curves["by hand"] = train(by_hand, step_by_hand)
print(f"{type(by_hand).__name__}: weights after 100 steps equal to those of one process, "
      f"to 1e-6:",
      largest_gap(by_hand, alone[pair.rank]) < 1e-6)

# %% [markdown]
# There are two loops and two optimisers. Adam on rank 0 knows only the encoder's parameters, Adam on rank 1 knows only the decoder's, and both must step.
# Because Adam treats each parameter by itself, two of them do the same as one. (This is not true for a method that looks at all parameters together. For
# example, to clip by the norm of *all* gradients, the ranks must first sum their squared norms, which takes an all-reduce of one number.)
#
# **Predict.** Suppose that the encoder makes a small mistake and sends `cell.detach()`. Does the loss of the first step change? Does the encoder's gradient
# change? Does any rank raise an error?

# %%
# Run this cell to make your prediction.
predict("12-detach", "What changes in the first step if the encoder sends cell.detach()?",
        ["the loss", "the gradient", "the loss and the gradient", "nothing"])

# %%
# %%px --ranks 0,1
encoder, decoder = parts()
sources, targets = batch(64, torch.Generator().manual_seed(0))
if pair.rank == 0:
    h, cell = encoder(sources)
    phi_h, _ = (functions.send(h, pair, 1, tag=0),
                functions.send(cell.detach(), pair, 1, tag=1))
    phi_h.backward()
    got = encoder.rnn.weight_hh_l0.grad.norm()
    encoder.zero_grad()
    decoder(encoder(sources), targets).backward()
    print(f"norm of the gradient of the encoder's recurrent weights: {got:.4f}, in one "
          f"process {encoder.rnn.weight_hh_l0.grad.norm():.4f}")
else:
    loss = decoder((functions.recv(pair, 0, tag=0), functions.recv(pair, 0, tag=1)),
                   targets)
    loss.backward()
    print(f"loss {loss.item():.4f}, in one process {curves['one process'][0]:.4f}")

# %%
# Run this cell to compare your prediction with the outcome.
def changed():
    gradient = "got.item() - encoder.rnn.weight_hh_l0.grad.norm().item()"
    gradient += " if world.rank == 0 else 0"
    loss = "loss.item() - curves['one process'][0] if world.rank == 1 else 0"
    differs = [max(map(abs, cluster.pull(one))) > 1e-6 for one in (gradient, loss)]
    return {(True, True): "the loss and the gradient", (True, False): "the gradient",
            (False, True): "the loss", (False, False): "nothing"}[tuple(differs)]

settle("12-detach", changed)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The forward pass is the same, so the first loss is the same, too. In the backward pass, however, the part of the gradient that comes through the cell is
# missing. No rank raises an error, because it is legal to send a detached tensor. The model still learns, but less well. For this reason, a one-time comparison
# with a single process must include the *gradients* and not only the first loss.
#
# If you send `cell` itself and forget its delegate, the library does raise an error in the next step, because a gradient came back and was never fetched.
# </details>
#
# ## In two, with links
#
# The function `create_multi_node_n_step_rnn` wraps an RNN. With `rank_out=1`, the RNN's final state is sent to rank 1, and with `rank_in=0`, its initial state
# is received from rank 0. The wrapped RNN takes a list of sequences of different lengths. It returns the states, the outputs and the delegate that represents
# everything it has sent.

# %% tags=["setup"]
# %%px --setup
class SplitEncoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.embed = encoder.embed
        self.rnn = links.create_multi_node_n_step_rnn(encoder.rnn, pair, rank_out=1)

    def forward(self, sources, targets):
        h, cell, outputs, delegate = self.rnn([self.embed(source) for source in sources])
        return delegate

# %% tags=["setup"]
# %%px --setup
class SplitDecoder(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.embed, self.head = decoder.embed, decoder.head
        self.rnn = links.create_multi_node_n_step_rnn(decoder.rnn, pair, rank_in=0)

    def forward(self, sources, targets):
        h, cell, outputs, _ = self.rnn([self.embed(tokens) for tokens in shifted(targets)])
        return cross_entropy(self.head(torch.cat(outputs)), torch.cat(targets))

# %% [markdown]
# With the links, the loss adds the same numbers in a different order, namely string by string instead of all first tokens, then all second tokens, and so on.
# Both ranks now do the same thing, since each calls the module and then `backward()` on what the module returns. On rank 0, the module returns a delegate,
# whose value is 0.

# %%
# %%px --ranks 0,1
def step_with_links(module, sources, targets):
    out = module(sources, targets)
    out.backward()
    return out.item()

encoder, decoder = parts()
with_links = SplitEncoder(encoder) if pair.rank == 0 else SplitDecoder(decoder)
curves["n-step RNN"] = train(with_links, step_with_links)
print("last", "loss" if pair.rank else "delegate", f"{curves['n-step RNN'][-1]:.4f}")

# %% [markdown]
# `MultiNodeChainList` takes a model as a list of parts, each with the rank from which it receives and the rank to which it sends. The output of a part may be a
# tuple. A part with a `rank_in` gets what that rank sends and nothing else, so the decoder must be given its targets beforehand.

# %%
# %%px --ranks 0,1
class Answering(nn.Module):
    """Run the decoder as a part of a chain that gets the state and has the targets."""
    def __init__(self, decoder):
        super().__init__()
        self.decoder, self.targets = decoder, None
    def forward(self, state):
        return self.decoder(state, self.targets)

encoder, decoder = parts()
chain = links.MultiNodeChainList(pair)
if pair.rank == 0:
    chain.add_link(encoder, rank_in=None, rank_out=1)
else:
    chain.add_link(Answering(decoder), rank_in=0, rank_out=None)

# %%
# %%px --ranks 0,1
def step_of_chain(chain, sources, targets):
    if pair.rank == 1:
        chain.parts[0].targets = targets
    out = chain(sources)
    out.backward()
    return out.item()

curves["chain list"] = train(chain, step_of_chain)

# %% [markdown]
# ## The picture: one curve
#
# Four training runs should give the same loss curve, but how closely must the losses agree? In float64, a loss of 2 is rounded by about 2e-16. Each step rounds
# thousands of numbers, and training carries the differences forward. Here, these differences stay near 1e-15, as the second cell below shows. The tolerance is
# 1e-6, which is far above all rounding errors, so a difference of that size would mean that the program has a bug. In float32, the rounding errors themselves
# reach 5e-7 in this very training run. These errors could hardly be distinguished from a bug, so the ranks compute in float64 here.

# %%
from manyhands.plots.curves import coinciding, gap

curves = cluster.pull("curves")[1]
serial = curves.pop("one process")
for name, losses in curves.items():
    print(f"{name:<11} last loss {losses[-1]:.4f}, one process {serial[-1]:.4f}, equal at "
          f"all 100 steps to 1e-6: {gap(losses, serial) < 1e-6}")

# %% tags=["measured"]
print("largest difference:", ", ".join(f"{name} {gap(losses, serial):.0e}"
                                       for name, losses in curves.items()))
coinciding(("one process", serial), curves, tolerance=1e-6,
           title="loss of one process and of three splits")

# %% [markdown]
# Both in the split by hand and in the chain, the two ranks perform exactly the same operations as a single process, and messages do not change a single bit.
# The difference is therefore exactly 0, unless the machine itself adds in a different order from run to run.
#
# ## What crosses
#
# To see what crosses the cut in a step, we use the ledger, which counts every message.

# %%
# %%px
import time

from manyhands.ledger import Ledger

module, (sources, targets) = parts()[pair.rank], batch(64, torch.Generator().manual_seed(0))
with Ledger() as ledger:
    step_by_hand(module, sources, targets)
account = ledger.gather(pair)
if world.rank == 0:
    print(account.log())

# %% [markdown]
# `h` and `cell` each take 64 strings x 64 numbers x 8 bytes = 32768 bytes, for short strings as well as for long ones. Messages of one round need not wait for
# each other. There are two rounds, because the state must arrive before the decoder can start, and the state's gradient must arrive before the encoder can
# finish. In the log, `send.backward` is the gradient for which rank 0's `send` waits in its backward pass. Rank 1's `recv` sends this gradient in its own
# backward pass.

# %% [markdown]
# > **On GPUs.** Plain `torch.distributed` has no tags on NCCL. The i-th send to a rank meets its i-th receive, so `h` and `cell` must have the same order on both
# > sides, and the receiver must know their shapes. `manyhands.functions` first sends a header with the tag and the shape over gloo. If you use several groups,
# > like `pair` and `copies` below, use them in the same order on all ranks. A clock measures only the launch of the kernels, unless you call
# > `torch.cuda.synchronize()` before you read it.

# %% [markdown]
# ## The bill of attention
#
# A state of fixed size is a property of *this* model. For each token of its answer, a decoder with *attention* (Bahdanau et al. 2015) looks at the encoder's
# output for **every** token of the source. All outputs must then cross the cut, and a gradient for each of them comes back.
#
# **Predict.** Consider three batches of 64 strings, with 5, 50 and 500 digits per string, respectively. How many bytes does each rank send, without and with
# attention?

# %%
# Run this cell to make your prediction.
predict("12-state",
        "By what factor do the bytes grow from 50 to 500 digits without attention?",
        unit="times", within=0.05)
predict("12-attention",
        "By what factor do the bytes grow from 50 to 500 digits with attention?",
        unit="times", within=0.05)

# %%
# %%px --ranks 0,1
from torch.nn.functional import scaled_dot_product_attention

def bytes_sent(length, attention):
    (encoder, _), source = parts(), torch.randint(0, 10, (length, 64)).to(device)
    with Ledger() as ledger:
        if pair.rank == 0:
            outputs, (h, cell) = encoder.rnn(encoder.embed(source))
            functions.send((h, cell, outputs) if attention else (h, cell), pair,
                           rank=1).backward()
        else:
            h, cell, *outputs = functions.recv(pair, rank=0)
            loss = (h + cell).sum()  # instead of the rest of the decoder
            # [strings, digits, numbers]
            for keys in (one.transpose(0, 1) for one in outputs):
                loss = (loss + scaled_dot_product_attention(h.transpose(0, 1), keys,
                                                            keys).sum())
            loss.backward()
    return ledger.bytes_sent

# %%
# %%px --ranks 0,1
for length in (5, 50, 500):
    print(f"{length:>3} digits: {bytes_sent(length, attention=False):>6,} bytes sent, with "
          f"attention {bytes_sent(length, attention=True):>10,}")

# %%
# Run this cell to compare your prediction with the outcome.
def growth(attention):
    both = f"[bytes_sent(length, {attention}) for length in (50, 500)]"
    shorter, longer = cluster.pull(f"{both} if world.rank < 2 else None")[0]
    return longer / shorter

settle("12-state", lambda: growth(False))
settle("12-attention", lambda: growth(True))

# %% [markdown]
# <details><summary>Why?</summary>
#
# For the batch, one output takes 64 x 64 x 8 = 32768 bytes, as many as `h`. The state consists of two tensors of this size, and attention adds another for each
# digit, in both the forward and the backward pass. The outputs cross once, however many layers of the decoder look at them, and the gradients of an output are
# added up before the sum comes back. In a transformer, there is no state, so the outputs are all that crosses.
# </details>
#
# ## Images: a feature map crosses
#
# ChainerMN's documentation recommends the cut between encoder and decoder for CNNs as well, because the whole model can be too large for one GPU even if each
# half fits. Our two CNNs are small and remove noise from the track's digits, which have 8 x 8 pixels. The encoder halves the width and the height twice, and
# the decoder doubles them twice. With `skip`, the encoder's *outer* map goes to the decoder, too, as in a U-Net (Ronneberger et al. 2015).

# %% tags=["setup"]
# %%px --setup
class ImageEncoder(nn.Module):
    def __init__(self, skip):
        super().__init__()
        self.outer = nn.Conv2d(1, 8, kernel_size=3, stride=2, padding=1)
        self.inner = nn.Conv2d(8, 16, kernel_size=3, stride=2, padding=1)
        self.skip = skip

    def forward(self, images):                 # [n, 1, 8, 8]
        outer = torch.relu(self.outer(images))  # [n, 8, 4, 4]
        inner = torch.relu(self.inner(outer))   # [n, 16, 2, 2]
        return (inner, outer) if self.skip else (inner,)

class ImageDecoder(nn.Module):
    def __init__(self, skip):
        super().__init__()
        self.inner = nn.ConvTranspose2d(16, 8, kernel_size=2, stride=2)
        self.outer = nn.ConvTranspose2d(16 if skip else 8, 1, kernel_size=2, stride=2)

    def forward(self, maps, clean):
        inner, *outer = maps
        images = self.outer(torch.cat([torch.relu(self.inner(inner)), *outer], dim=1))
        return mse_loss(images, clean)

# %% [markdown]
# `pair_step` is the training step of a pair, for any encoder and decoder. All maps travel as a tuple in one message, and so do their gradients on the way back.

# %% tags=["setup"]
# %%px --setup
from torch.nn.functional import mse_loss

from manyhands import track

digits = torch.from_numpy(track.data()[0]).reshape(-1, 1, 8, 8)

def noisy_digits(size, draw):
    clean = digits[torch.randint(len(digits), (size,), generator=draw)]
    noisy = clean + 0.3 * torch.randn(clean.shape, generator=draw)
    return noisy.to(device), clean.to(device)

def image_parts(skip):
    torch.manual_seed(0)
    return ImageEncoder(skip).to(device), ImageDecoder(skip).to(device)

def pair_step(module, sources, *targets):
    if pair.rank == 0:
        functions.send(module(sources), pair, rank=1).backward()
        return None
    loss = module(functions.recv(pair, rank=0, force_tuple=True), *targets)
    loss.backward()
    return loss.item()

# %%
# %%px --ranks 0,1
for skip in (False, True):
    whole, mine = nn.ModuleList(image_parts(skip)), image_parts(skip)[pair.rank]
    train(whole, step_alone, batch=noisy_digits)
    losses = train(mine, pair_step, batch=noisy_digits)
    print(f"{type(mine).__name__}, skip {skip}: weights of one process, to 1e-6:",
          largest_gap(mine, whole[pair.rank]) < 1e-6, end="")
    print(f"; loss {losses[0]:.4f} to {losses[-1]:.4f}" if pair.rank else "")

# %% [markdown]
# With both cuts, the model trains as it does in a single process. With the outer map, the loss ends at 0.0300 instead of 0.0555. The decoder then gets a map of
# higher resolution, but since it also has more weights, the comparison does not show how much of the gain is due to the resolution. How many bytes does the
# outer map cost?

# %%
# %%px --ranks 0,1
def bytes_of_images(side, skip):
    mine, images = image_parts(skip)[pair.rank], torch.zeros(64, 1, side, side).to(device)
    with Ledger() as ledger:
        pair_step(mine, images, images)
    return ledger.bytes_sent

for side in (8, 16, 32):
    print(f"64 images of {side} x {side}: {bytes_of_images(side, skip=False):>9,} bytes "
          f"sent, with the outer map {bytes_of_images(side, skip=True):>9,}")

# %% [markdown]
# The LSTM's state had the same size for all lengths of the strings. A map, in contrast, grows with the area of the image, while the number of weights remains
# the same. With skip connections, the maps of all levels cross. The outermost map is the largest, and here it accounts for two thirds of the bytes. For this
# reason, count the bytes that cross before you choose where to cut.
#
# Models that read and generate both images and text are cut at the same places. For example, DistTrain (Zhang et al. 2024) separates the image encoder, the
# language model and the image generator. Because these parts are unequal, it gives each part a different number of ranks and splits each part further in a
# different way.
#
# ## Who waits for whom
#
# **Predict.** Each of two ranks has about half of the model. By how much is a step faster than in a single process?

# %%
# Run this cell to make your prediction.
predict("12-faster", "How fast is a step on two ranks, compared with a single process?",
        ["nearly twice as fast", "a little faster", "not faster"])

# %% tags=["measured"]
# %%px --ranks 0,1
def median_ms(step, module, repeats=9):
    times_s = []
    for _ in range(3 + repeats):
        before_s = time.perf_counter()
        step(module, sources, targets)
        times_s.append(time.perf_counter() - before_s)
    return 1e3 * sorted(times_s[3:])[repeats // 2]

if pair.rank == 0:  # rank 1 waits
    print(f"one step in one process: {median_ms(step_alone, alone):.1f} ms")
two_ms = median_ms(step_by_hand, module)
if pair.rank == 0:
    print(f"one step in two: {two_ms:.1f} ms")

# %% [markdown]
# Where does the time go? The ledger records when each message was sent and when it arrived, and both ranks read the same clock because they are on one node.
# Between these moments, a rank either computes or waits. Of nine steps, we keep the step with the median duration.

# %%
# %%px --ranks 0,1
def watched_step():
    pair.barrier()
    moments = {"left": [], "came": [], "start": time.perf_counter()}
    with Ledger() as ledger:
        step_by_hand(module, sources, targets)
    moments["stop"] = time.perf_counter()
    for event in ledger.gather(pair).events[pair.rank]:
        moments["left" if event.kind == "sent" else "came"].append(event.seconds)
    return moments

steps = [watched_step() for _ in range(9)]
by_length = sorted(range(9), key=lambda i: steps[i]["stop"] - steps[i]["start"])
when.update(steps[pair.bcast_obj(by_length[4])])  # the same step on both ranks

# %%
encoder, decoder = cluster.pull("when")[:2]
inside = encoder["left"][-1] <= decoder["came"][-1] <= decoder["left"][0] <= encoder[
    "came"][-1]
print("the decoder's work lies inside the encoder's wait:", inside)

# %%
# Run this cell to compare your prediction with the outcome.
settle("12-faster", lambda: "not faster" if inside else "a little faster")

# %% tags=["measured"]
from manyhands.plots.timeline import table, timeline

first_s = min(encoder["start"], decoder["start"])
def span(start_s, stop_s, label):
    return (start_s - first_s) * 1e3, (stop_s - first_s) * 1e3, label

tracks = {
    "rank 0: encoder": {"compute": [span(encoder["start"], encoder["left"][0], "forward"),
                                    span(encoder["came"][-1], encoder["stop"], "backward")],
                        "network": [span(encoder["left"][0], encoder["came"][-1],
                                         "gradient")]},
    "rank 1: decoder": {"compute": [span(decoder["came"][-1], decoder["left"][0],
                                         "forward and backward")],
                        "network": [span(decoder["start"], decoder["came"][-1], "state")]}}
print(table(tracks))
timeline(tracks, words={"compute": "works", "network": "waits for", "time": "time (ms)"},
         title="one step on two ranks: who works, who waits")

# %% [markdown]
# <details><summary>Why is it not faster?</summary>
#
# While the decoder computes its forward and backward passes, the encoder's rank waits. Before and after that, the decoder's rank waits. At every moment, one of
# the two ranks has nothing to do, and the messages take additional time. In the picture, this time is the gap between the decoder's work and the encoder's
# backward pass. (A message of more than 8 KB counts as sent when the other rank has received it, so the second gradient leaves only after the first has
# arrived.) For such a small model, these gaps are a large part of the step. (If a step is faster in two processes, this is noise, or the smaller half fits
# better into a cache.) The cut saves memory, but no time. Unit 14 splits the batch into micro-batches, so that the encoder can work on the next micro-batch
# while the decoder works on the current one. This is called a *pipeline*.
# </details>
#
# ## What it saves
#
# Each rank holds only its own parameters, their gradients, and Adam's two numbers for each parameter.

# %%
# %%px --ranks 0,1
def held(module):
    numbers = sum(parameter.numel() for parameter in module.parameters())
    return (f"{numbers} parameters, with gradients and Adam's numbers "
            f"{4 * 8 * numbers / 1e6:.2f} MB")

print(f"{type(by_hand).__name__}: {held(by_hand)}; in one process {held(alone)}")

# %% [markdown]
# Each rank also keeps only the **activations** of its own half, which the forward pass stores for the backward pass. Activations grow with the batch and with
# the length of the strings, and they often take the larger part of the memory. In large networks, recomputation (unit 14) can make them smaller than the 16
# bytes per weight that training with Adam takes in mixed precision (unit 16). The next cell asks autograd what it keeps.

# %% tags=["measured"]
# %%px --ranks 0,1
def kept_mb(forward):
    """What autograd keeps for backward, parameters left out, in MB."""
    known, kept = {p.untyped_storage().data_ptr() for p in halves.parameters()}, {}
    def see(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(see, lambda tensor: tensor):
        result = forward()  # held until all is counted: else its memory is used again
    return sum(kept[place] for place in kept.keys() - known) / 1e6

halves = nn.ModuleList(parts())
for size in (64, 256):
    some, answers_to_some = batch(size, torch.Generator().manual_seed(0))
    state = [part.detach() for part in halves[0](some)]
    half = kept_mb((lambda: halves[0](some)) if pair.rank == 0
                   else (lambda: halves[1](state, answers_to_some)))
    print(f"{size} strings: {half:.1f} MB kept in this half, in one process "
          f"{kept_mb(lambda: halves[1](halves[0](some), answers_to_some)):.1f} MB")

# %% [markdown]
# The same cut also runs over **MPI**. In [scripts/12_halves.py](scripts/12_halves.py), `comm.create_communicator()` uses MPI because `mpirun` has started the
# script, whereas under `torchrun` it uses gloo or NCCL. Nothing else changes.

# %%
run = cluster.launch("scripts/12_halves.py", with_="mpirun", nodes=1, ranks_per_node=2)

# %% [markdown]
# ## Two pairs: model parallel and data parallel
#
# Ranks 2 and 3 form the second pair. Of the batch, the first pair takes 40 strings and the second pair takes 24. Every rank now has two communicators. The
# state travels through `pair`, while `copies` contains the ranks that hold the same module and must keep its copies equal.

# %% tags=["setup"]
# %%px --setup
# ranks 0 and 2 are the encoders, and ranks 1 and 3 are the decoders
copies = world.split(color=pair.rank)
share = slice(0, 40) if copies.rank == 0 else slice(40, 64)

# %% [markdown]
# Each step uses `pair_step` from above, which passes `divisor` on to the decoder. Then `multi_node_mean_grad` computes the mean of the copies' gradients, as in
# data parallelism.
#
# **Predict.** Each decoder divides its loss by its own number of tokens, and the gradients are averaged over the copies. Is the result the gradient that a
# single process computes from the whole batch? First consider two shares of 32 strings each, and then shares of 40 and 24 strings.

# %%
# Run this cell to make your prediction.
predict("12-tokens", "Which shares give the gradient of a single process, to 1e-6?",
        ["32 and 32", "40 and 24", "32 and 32, 40 and 24", "none"])

# %%
# %%px
def far_from_one_process(share, divisor=None):
    encoder, decoder = parts()
    sources, targets = batch(64, torch.Generator().manual_seed(0))
    decoder(encoder(sources), targets).backward()
    right = (encoder, decoder)[pair.rank]
    mine = parts()[pair.rank]
    pair_step(mine, sources[share], targets[share], divisor)
    copies.multi_node_mean_grad(mine)
    return max((a.grad - b.grad).abs().max().item()
               for a, b in zip(mine.parameters(), right.parameters()))

half = slice(32 * copies.rank, 32 * copies.rank + 32)
print(f"largest difference of a gradient: 32 and 32 strings "
      f"{far_from_one_process(half):.5f}, 40 and 24 strings "
      f"{far_from_one_process(share):.5f}")

# %%
# Run this cell to compare your prediction with the outcome.
def right():
    far = {cut: max(cluster.pull(f"far_from_one_process({rows})"))
           for cut, rows in (("32 and 32", "half"), ("40 and 24", "share"))}
    return ", ".join(cut for cut in far if far[cut] < 1e-6) or "none"

settle("12-tokens", right)

# %% [markdown]
# <details><summary>Why is even 32 and 32 wrong?</summary>
#
# The unit of the loss is a token and not a string. The 32 strings of one pair do not have as many tokens as the 32 strings of the other, so a token counts more
# in one pair than in the other. The loss of a single process is
#
# $$ L = \frac{S_0 + S_1}{n_0 + n_1}, \qquad \text{not} \qquad \frac{1}{2} \left( \frac{S_0}{n_0} + \frac{S_1}{n_1} \right) $$
#
# where $S_i$ is the sum over the tokens of pair $i$, and $n_i$ is the number of these tokens. Since the gradients are averaged over two copies, each decoder
# must divide by $(n_0 + n_1) / 2$.
# </details>
#
# Therefore, the decoders first sum their numbers of tokens, which takes one small message. The encoders need not know the sum, because the gradient that they
# receive has already been divided by the right number.

# %%
# %%px
def common_divisor(targets):
    if pair.rank == 0:
        return None
    return copies.allreduce_obj(sum(map(len, targets))) / copies.size

sources, targets = batch(64, torch.Generator().manual_seed(0))
far = far_from_one_process(share, common_divisor(targets[share]))
print(f"the gradients of one process, to 1e-6: {far < 1e-6}")

# %% [markdown]
# PyTorch's DistributedDataParallel can do the averaging if you give it the process group of the copies. DDP starts its all-reduce when gradients are ready,
# which happens on the encoder's rank only after the delegate's backward pass has received the state's gradients. Now all four ranks train.

# %%
# %%px
from torch.nn.parallel import DistributedDataParallel

def hybrid_step(module, sources, targets):
    sources, targets = sources[share], targets[share]
    return pair_step(module, sources, targets, common_divisor(targets))

module = parts()[pair.rank]
ddp = DistributedDataParallel(module, process_group=copies.process_group)
losses = train(ddp, hybrid_step, steps=150)
if pair.rank == 1:
    loss = copies.allreduce_obj(losses[99]) / copies.size
    print(f"loss at step 100: {loss:.4f}")
del ddp  # before its process group ends

# %% [markdown]
# The mean of the two decoders' losses is the loss that a single process had at step 100, in the section *In one process*.
#
# <details><summary>Which two ranks should share a node?</summary>
#
# Count what crosses between the nodes in a step. Here, each pair is inside a node, so only the all-reduce of the gradients crosses. In float64, it takes about
# 21 168 x 8 = 169 kB for the encoder and 175 kB for the decoder, in each direction. If each pair were spread over both nodes, the states of 64 strings and
# their gradients would cross instead, taking 66 kB in each direction. This is less data, but the other rank of the pair waits for each of these
# messages, whereas the all-reduce of a larger model runs in several buckets during the backward pass (unit 06). In our model, all gradients fit into one
# bucket, which is sent when the last of them is ready. The best choice therefore depends on the size of the batch, on the model and on the network. To try it,
# add a cell here with `pair = world.split(color=world.rank % 2)`, `copies` and `share` as above, and time `hybrid_step`. You can see a difference if there is a
# network between the nodes, for example with `Cluster(..., profile="emulated")` or on two machines.
# </details>
#
# ## Answers
#
# When you use the model, the decoder has no target. Instead, its next input is its own last guess, for which it always chooses the most likely token (*greedy*
# decoding). Since no gradient is needed, we use `torch.no_grad()`, and `send` then does nothing but send.

# %%
# %%px
def answers(decoder, state, places):
    tokens, found = torch.full((state[0].shape[1],), END, device=device), []
    for _ in range(places):
        output, state = decoder.rnn(decoder.embed(tokens)[None], state)
        tokens = decoder.head(output[0]).argmax(1)
        found.append(tokens)
    return torch.stack(found, dim=1)  # [strings, places]

sources, targets = batch(500, torch.Generator().manual_seed(1))
with torch.no_grad():
    if pair.rank == 0:
        functions.send(module(sources), pair, rank=1)
    else:
        found = answers(module, functions.recv(pair, rank=0), places=6)

# %%
# %%px --ranks 1,3
right = [guess[:len(target)].equal(target) for guess, target in zip(found, targets)]
for source, guess in list(zip(sources, found))[:3]:
    print(source.tolist(), "->", guess.tolist()[:guess.tolist().index(END)])
print(f"{sum(right) / len(right):.0%} of 500 strings are right")

# %% [markdown]
# Both decoders give the same answers, because they are copies.
#
# ## Summary
#
# * The state, `h` and `cell`, crosses the cut, and its gradient comes back. For this LSTM, the number of bytes does not depend on the length of the strings.
#   With attention, all outputs cross as well. Parameters never cross.
# * The encoder's half is a forward pass and `send`, then `backward()` on a tensor that connects all delegates. The decoder's half is `recv`, the loss and
#   `backward()`. Each rank has an optimiser, and both optimisers must step.
# * At every step, the split model agrees with a single process to within 1e-6, in a dtype whose rounding errors are far smaller. Compare gradients, too,
#   because a detached tensor does not change the first loss.
# * One of the two ranks always waits. The cut saves memory for parameters and activations, but to save time you need a pipeline (unit 14).
# * If the shares have different sizes, all decoders divide by the same number, namely the number of tokens in the whole batch divided by the number of pairs.
#
# **Now the lab:** write the split by hand, and then the hybrid of model and data parallelism. After that, unit 13 cuts *inside* a layer.
#
# **References.** I. Sutskever, O. Vinyals, Q. V. Le 2014, *Sequence to Sequence Learning with Neural Networks*,
# [arXiv 1409.3215](https://arxiv.org/abs/1409.3215). D. Bahdanau, K. Cho, Y. Bengio 2015, *Neural Machine Translation by Jointly Learning to Align and
# Translate*, [arXiv 1409.0473](https://arxiv.org/abs/1409.0473). O. Ronneberger, P. Fischer, T. Brox 2015, *U-Net*,
# [arXiv 1505.04597](https://arxiv.org/abs/1505.04597). Z. Zhang et al. 2024, *DistTrain*, [arXiv 2408.04275](https://arxiv.org/abs/2408.04275). The same split
# in ChainerMN: [Example 2: seq2seq](https://docs.chainer.org/en/v7.8.0/chainermn/model_parallel/example2_seq2seq.html). T. Akiba, K. Fukuda, S. Suzuki 2017,
# *ChainerMN: Scalable Distributed Deep Learning Framework*, [arXiv 1710.11351](https://arxiv.org/abs/1710.11351).
# [PyTorch: pack_sequence](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_sequence.html).

# %%
cluster.stop()
