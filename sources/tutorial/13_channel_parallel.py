# %% [markdown] unit={"minutes": 50, "ranks": 4, "framework": "torch", "title": "Channel-parallel convolution"}
# # 13 Channel-parallel convolution
#
# In this notebook, one convolution is spread over four ranks, each of which holds a part of the weight. At the end, you can
#
# * split a convolution by output channel and by input channel, and explain what must travel forward and backward in each case.
# * explain why gradients are four times too large when four ranks compute the same loss, and repair this in two ways.
# * distinguish a dense layer from a similar grouped layer, by feeding them one channel at a time.
# * predict how many bytes a layer moves, above which image size data parallelism moves fewer, and for which of these bytes a rank waits.
# * split the image itself into strips, and exchange halos in both passes.
# * combine two layers so that they need only one communication in the forward pass, and train channel-parallel layers to the same result as a single process.
#
# **Before:** you know what units 04 (collectives) and 11 (differentiable communication) teach. **Minutes:** 50 · **Ranks:** 4.

# %% [markdown]
# ## Four ranks
#
# This kernel starts four ranks, and cells that begin with `%%px` run on all of them. The option `--setup` marks the cells that are run again if the cluster
# must be healed.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=1, ranks_per_node=4, framework="torch")

# %% tags=["setup"]
# %%px --setup
import torch
from torch import nn
from torch.nn.functional import conv2d, cross_entropy, relu

from manyhands import comm, functions, links
from manyhands.data import digits, shard
from manyhands.ledger import Ledger

c = comm.create_communicator(timeout_s=30)
rank, size, device = c.rank, c.size, c.device

# %% [markdown]
# The layer has 6 input channels and 10 output channels, and four ranks can share neither of them evenly. All numbers are small integers, so that "equal" means
# identical down to the last bit. In this notebook, every rank also has the whole layer for comparison.

# %% tags=["setup"]
# %%px --setup
torch.manual_seed(0)  # the same numbers on every rank
x = torch.randint(-3, 4, (2, 6, 5, 5)).double().to(device)
weight = torch.randint(-3, 4, (10, 6, 3, 3)).double().to(device)
bias = torch.randint(1, 4, (10,)).double().to(device)
whole = conv2d(x, weight, bias, padding=1)

# %% [markdown]
# ## A convolution is a sum
#
# Output channel $o$ of a convolution is a sum over all input channels $i$, each of which has its own small filter, plus a bias:
#
# $$ y_o = b_o + \sum_i w_{oi} * x_i $$
#
# Therefore, the weight is a table of filters, with a row for each output channel and a column for each input channel. A table can be split in two ways. A block
# of **rows** gives some of the outputs completely, so the outputs must be joined. A block of **columns** gives a part of every output, so the parts must be
# added up. We call the first way *out split* and the second *in split*. (Dryden et al. 2019 call them *filter parallelism* and *channel parallelism*.)

# %%
# %%px --ranks 0
rows, columns = ([shard(10, r, size) for r in range(size)],
                 [shard(6, r, size) for r in range(size)])
joined = torch.cat([conv2d(x, weight[o], bias[o], padding=1) for o in rows], dim=1)
added = sum(conv2d(x[:, i], weight[:, i], padding=1) for i in columns) + bias[:, None, None]
print("blocks of rows:   ", [o.stop - o.start for o in rows], "joined, equal:",
      torch.equal(joined, whole))
print("blocks of columns:", [i.stop - i.start for i in columns], "added, equal: ",
      torch.equal(added, whole))

# %% [markdown]
# ## By output channel: every rank needs the whole input
#
# Each rank has a block of rows, that is, 2 or 3 of the 10 outputs, with 6 x 3 x 3 weights each. An all-gather, whose parts may have different numbers of
# channels, gives all outputs to every rank.

# %%
# %%px
mine = shard(10, rank, size)
part = conv2d(x, weight[mine], bias[mine], padding=1)
y = torch.cat(functions.allgather(c, part), dim=1)
print(f"channels {mine.start} to {mine.stop - 1}, {weight[mine].numel()} of "
      f"{weight.numel()} weights; all outputs equal: {torch.equal(y, whole)}")

# %% [markdown]
# ## The same loss on four ranks
#
# Now we look at the gradients. A single process with the whole layer computes the right ones. Instead of a loss, we use its gradient with respect to y, called
# `slope`.

# %% tags=["setup"]
# %%px --setup
def leaves(*tensors):
    return [tensor.clone().requires_grad_() for tensor in tensors]

slope = torch.randint(-3, 4, whole.shape).double().to(device)
alone = leaves(x, weight, bias)
(conv2d(*alone, padding=1) * slope).sum().backward()
right_x, right_weight, right_bias = (leaf.grad for leaf in alone)

def told(gradient, right):
    for times in (1, size):
        if torch.equal(gradient, times * right):
            return f"{times} x right"
    return "no multiple of the right one"

# %% [markdown]
# **Predict.** After the all-gather, every rank has the whole output. Each rank computes the same loss and calls `backward`. By what factor does the gradient of
# the rank's weight differ from the gradient that a single process computes? How does the gradient of x compare?

# %%
# Run this cell to make your prediction.
predict("13-weight", "By what factor is the gradient of the rank's weight too large?",
        unit="times")
predict("13-x", "How does the gradient of x compare with the right gradient?",
        ["1 x right", "4 x right", "no multiple of the right one"])

# %%
# %%px
x_here, w_here, b_here = leaves(x, weight[mine], bias[mine])
part = conv2d(x_here, w_here, b_here, padding=1)
y = torch.cat(functions.allgather(c, part), dim=1)
(y * slope).sum().backward()
print("weight:", told(w_here.grad, right_weight[mine]), end="; ")
print("x:", told(x_here.grad, right_x))

# %%
# Run this cell to compare your prediction with the outcome.
def weight():
    return float(cluster.pull("told(w_here.grad, right_weight[mine])")[0].split()[0])

settle("13-weight", weight)
settle("13-x", lambda: cluster.pull("told(x_here.grad, right_x)")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# *The weight.* The backward pass of `functions` sees the four programs as one program. The objective of this program is the sum of everything on which the
# ranks call `backward`, which is four times the same loss. As a result, the backward pass of the all-gather adds up four equal gradients.
#
# *x.* Each rank has a copy of x but has used it only for its own output channels. For this reason, each rank has only a part of the gradient. This part is four
# times too large as well, and no rank has added the parts up.
# </details>
#
# **The first remedy is to divide.** Since the loss was counted four times, divide the gradients by four, and add up the parts of x's gradient.

# %%
# %%px
print("weight / 4:", told(w_here.grad / size, right_weight[mine]), end="; ")
print("sum of x's parts / 4:", told(c.allreduce(x_here.grad) / size, right_x))

# %% [markdown]
# The result is right but wasteful. Since all ranks have the same loss, the all-gather's backward pass moved gradients that every rank already had.
#
# **The second remedy is to define what backward does.** Shoeybi et al. (2019) put two operators around a pair of layers, *f* before the first layer and *g*
# after the second. The forward pass of the one is the backward pass of the other. With a join defined in the same way, no rank receives data that it already
# has:
#
# | operator | forward | backward | place |
# |---|---|---|---|
# | copy (*f*) | x as it is | **sum** of all ranks' gradients | before the out split |
# | join | the channels of all ranks | the rank's own channels | after the out split |
# | sum (*g*) | **sum** of all ranks' tensors | the gradient as it is | after the in split |
#
# You write all three operators in the lab, and one appears below. The package's `links.ParallelConv2d` contains all three. How many bytes do they save?

# %%
# %%px
conv = nn.Conv2d(6, 10, 3, padding=1).double()
conv.weight.data, conv.bias.data = weight, bias
layer = links.ParallelConv2d.from_conv2d(conv, c, split="out")

def backward_of(function):
    """Return x's gradient after one step and the bytes that all ranks sent in backward."""
    x_here, = leaves(x)
    y = function(x_here)
    c.barrier()
    with Ledger() as ledger:
        (y * slope).sum().backward()
    return x_here.grad, sum(c.allgather_obj(ledger.bytes_sent))

# %%
# %%px
_, gathered = backward_of(
    lambda x: torch.cat(functions.allgather(c, conv2d(x, w_here, b_here, padding=1)),
                        dim=1))
gradient, operators = backward_of(layer)
told_weight = told(layer.weight.grad, right_weight[mine])
if rank == 0:
    print(f"weight: {told_weight}; x: {told(gradient, right_x)}")
    print(f"bytes in backward: {gathered} for the all-gather, and x still to be summed; "
          f"{operators} for x's sum, all in all")

# %% [markdown]
# In the all-gather's backward pass, the gradient of each of y's 500 numbers (8 bytes each) goes to three other ranks, for a total of 12,000 bytes. The
# all-reduce that sums x's gradient sends each of its 300 numbers twice as often (see *What travels*).
#
# ## By input channel: the outputs are sums
#
# Each rank has a block of columns and needs only the corresponding channels of x. Every rank's output has all channels and is one summand of the result.
#
# **Predict.** Each rank convolves with its block of the weight *and with the bias*, and an all-reduce adds up the outputs. By which multiple of the bias is the
# result too large?

# %%
# Run this cell to make your prediction.
predict("13-bias", "By how many times the bias is the summed output too large?",
        unit="times", within=0.01)

# %%
# %%px
mine = shard(6, rank, size)
y = c.allreduce(conv2d(x[:, mine], weight[:, mine], bias, padding=1))
off = (y - whole) / bias[:, None, None]
print("the output is too large by the bias, times", off.unique().tolist())

# %%
# Run this cell to compare your prediction with the outcome.
settle("13-bias", lambda: cluster.pull("off.mean().item()")[0])

# %% [markdown]
# <details><summary>Why three?</summary>
#
# The bias was added to four parts, so the sum contains it four times instead of once. With the mean instead of the sum, the bias would be right and everything
# else would be wrong. Therefore, add the bias once, after the sum.
# </details>
#
# If the sum is the operator *g*, all gradients are right. Nothing travels in the backward pass, because the gradient of a sum is the same for all
# its summands, and every rank already has it.

# %%
# %%px
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, part):
        return c.allreduce(part)

    @staticmethod
    def backward(ctx, gradient):
        return gradient

x_here, w_here, b_here = leaves(x[:, mine], weight[:, mine], bias)
y = Sum.apply(conv2d(x_here, w_here, padding=1)) + b_here[:, None, None]
(y * slope).sum().backward()
told_three = [told(w_here.grad, right_weight[:, mine]), told(x_here.grad, right_x[:, mine]),
              told(b_here.grad, right_bias)]
print(f"y equal: {torch.equal(y, whole)}; weight, x and bias:", ", ".join(told_three))

# %% [markdown]
# ## A layer that looks right
#
# The function `published` below is `ParallelConvolution2D` from ChainerMN's examples, translated to PyTorch. (We repaired it, because the original raises an
# error on ChainerMN 7.8.1.) Each rank takes every fourth input channel and applies its own small convolution, and then the outputs are gathered. The output has
# the right shape, nothing raises an error, and each rank has few weights. Read the function. How many weights do the four ranks have together, for 8 input
# channels, 8 output channels and 3 x 3 filters?
#
# To test such a layer, we feed it images in which only one input channel is not zero, and observe which output channels react. To find out *whose* weights are
# responsible, we set the weights of all other ranks to zero. The function `whose` returns a table of rank numbers, with -1 where nothing reacts.

# %% tags=["setup"]
# %%px --setup
channels = 8
o = shard(channels, rank, size)  # this rank's block of two

def published(x, weight):
    return torch.cat(functions.allgather(c, conv2d(x[:, rank::size], weight, padding=1)),
                     dim=1)

def out_split(x, weight):
    return torch.cat(functions.allgather(c, conv2d(x, weight, padding=1)), dim=1)

def in_split(x, weight):
    return c.allreduce(conv2d(x[:, o], weight, padding=1))

def one_process(x, weight):
    return conv2d(x, weight, padding=1)

# %%
# %%px
def whose(layer, shape):
    """[output, input]: the rank whose weights connect the two channels, or -1 if none."""
    # weights above 0, so that nothing cancels out
    found, weight = (torch.full((channels, channels), -1, device=device),
                     torch.rand(shape).to(device) + 1)
    # image i has only channel i
    images = torch.eye(channels, device=device)[:, :, None, None].expand(-1, -1, 4, 4)
    for owner in range(size):
        # [input, output]
        reaction = layer(images, weight * (rank == owner)).abs().amax((2, 3))
        found[reaction.T > 0] = owner
    return found.tolist()

panels = {"nn.Conv2d": whose(one_process, (8, 8, 3, 3)) if rank == 0 else None,
          "out split": whose(out_split, (2, 8, 3, 3)),
          "in split": whose(in_split, (8, 2, 3, 3)),
          "published": whose(published, (2, 2, 3, 3))}

# %% [markdown]
# **Predict.** The last picture shows the layer `published`, and a square is white if no weight connects its input to its output. How many of its 64 squares
# will be white?

# %%
# Run this cell to make your prediction.
predict("13-white", "How many of the 64 squares of `published` will be white?",
        unit="squares")

# %%
from manyhands.plots.connectivity import connectivity, table

panels = cluster.pull("panels")[0]
print(table(panels))
connectivity(panels)

# %%
# Run this cell to compare your prediction with the outcome.
settle("13-white", lambda: sum(row.count(-1) for row in panels["published"]))

# %% [markdown]
# <details><summary>How to read it</summary>
#
# A row is an output channel and a column is an input channel. The colour and the number show which rank's weights connect them. The first three layers are
# *dense*, so every square is filled. The out split divides the table into rows, and the in split divides it into columns. In the last picture, three quarters
# of the squares are white. Each rank's two outputs see only that rank's two inputs, so the layer is a **grouped convolution** with 4 groups. (The inputs are
# distributed in turn, 0 and 4 to rank 0, whereas the outputs are in blocks.)
# </details>
#
# PyTorch has grouped convolutions (`groups=4`). If we put the input channels into the order in which they are distributed (`order`), PyTorch's layer agrees
# with the published one down to the last bit. It has a quarter of the dense layer's weights:

# %%
# %%px
small = torch.randint(-3, 4, (2, 2, 3, 3),
                      generator=torch.Generator().manual_seed(rank)).double().to(device)
image = torch.randint(-3, 4, (1, 8, 4, 4),
                      generator=torch.Generator().manual_seed(9)).double().to(device)
every, order = torch.cat(functions.allgather(c, small)), [0, 4, 1, 5, 2, 6, 3, 7]
grouped = conv2d(image[:, order], every, padding=1, groups=4)
print(f"equal to groups=4: {torch.equal(published(image, small), grouped)}; weights on all "
      f"ranks: {every.numel()}, dense: {8 * 8 * 9}")

# %% [markdown]
# A grouped convolution is fine if you want one. However, it is a different model, and it changes with the number of ranks (with 8 ranks, it has 8 groups). A
# comparison with `nn.Conv2d`, with uneven channels and one channel fed at a time, would have revealed this.
#
# ## What travels
#
# Data parallelism moves gradients of weights, whereas a channel-parallel layer moves activations. The table assumes batches of $B$ images of side $s$, stride
# 1, outputs as large as the inputs, no bias, $N$ ranks and 4 bytes per number:
#
# | | forward | backward | bytes sent by all ranks together |
# |---|---|---|---|
# | out split | join y | sum x's gradient | $4 (N-1) (\lvert y \rvert + 2 \lvert x \rvert)$ |
# | in split | sum y | join x's gradient | $4 (N-1) (2 \lvert y \rvert + \lvert x \rvert)$ |
# | data parallel | | sum the weight's gradient | $4 (N-1) \cdot 2 \lvert w \rvert$ |
#
# A join sends the tensor $N-1$ times. A sum sends twice as much, because each rank first sums its share of the numbers and then the shares are joined (unit
# 04). The sizes $\lvert x \rvert = B c_{in} s^2$ and $\lvert y \rvert = B c_{out} s^2$ grow with the image, while $\lvert w \rvert = c_{out} c_{in} k^2$ does
# not. (Like `links.ParallelConv2d`, the in split of the table begins with the whole x on every rank. If each rank has only its channels of x, the backward pass
# moves nothing.)

# %%
# %%px
def sent(way, side, batch=4, c_in=64, c_out=32):
    """Return the bytes that all ranks send in one step. In data parallelism, each rank has
    a quarter of the batch."""
    if way == "data parallel":
        layer, batch = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), batch // size
    else:
        layer = links.ParallelConv2d(c, c_in, c_out, 3, padding=1, bias=False,
                                     split=way.split()[0])
    image = torch.randn(batch, c_in, side, side, device=device, requires_grad=True)
    with Ledger() as ledger:
        layer.to(device)(image).sum().backward()
        if way == "data parallel":
            c.multi_node_mean_grad(layer)
    return sum(c.allgather_obj(ledger.bytes_sent))

ways, sides = ["out split", "in split", "data parallel"], [2, 4, 8, 16, 32]
measured = {way: [sent(way, side) for side in sides] for way in ways}

# %% [markdown]
# **Predict.** The batch has 4 images, and the layer has 64 input channels, 32 output channels and 3 x 3 filters. At which side length of the image do the in
# split and data parallelism send the same number of bytes: near 4, 8 or 32?

# %%
# Run this cell to make your prediction.
predict("13-crossing", "At which side do in split and data parallel send equal bytes?",
        ["near 4", "near 8", "near 32"])

# %%
from manyhands.plots.connectivity import traffic, traffic_table

measured, sides = cluster.pull("measured")[0], cluster.pull("sides")[0]
formula = {"out split": lambda s: 4 * 3 * 4 * (32 + 2 * 64) * s**2, "in split": lambda s: 4
           * 3 * 4 * (2 * 32 + 64) * s**2,
           "data parallel": lambda s: 4 * 3 * 2 * 32 * 64 * 9}
print("measured / formula, bytes")
print(traffic_table(sides, measured, formula))
traffic(sides, measured, formula)

# %%
# Run this cell to compare your prediction with the outcome.
def unequal(side):
    costs = formula["in split"](side), formula["data parallel"](side)
    return max(costs) / min(costs)

settle("13-crossing", lambda: f"near {min((4, 8, 32), key=unequal)}")

# %% [markdown]
# <details><summary>Why there?</summary>
#
# The in split costs as much as data parallelism where $B (2 c_{out} + c_{in}) s^2 = 2 c_{out} c_{in} k^2$. In our example, $512 s^2 = 36864$, so $s \approx
# 8.5$.
#
# In terms of bytes, moving activations therefore pays off if images and batches are small and there are many channels. This is true of the late layers of a
# network, and above all of fully connected layers ($s = k = 1$). For the early layers, which have large images and small weights, data parallelism moves far
# fewer bytes. Krizhevsky (2014) splits a network in this way, with convolutions split by sample and fully connected layers by channel.
# </details>
#
# **Who waits for these bytes?** The data that a channel split sends is needed *between* two layers, because in both passes the next layer cannot begin before
# the data has arrived. It is on the **critical path** of the step. In contrast, the gradient of a weight is needed only at the end of the step, and travels
# while the backward pass computes the layers below (unit 06). For the same number of bytes, the channel split is therefore slower, so it must move far fewer
# bytes or use a far faster link. For this reason, tensor parallelism, as such splits are called in transformers, stays within a node or rack whose GPUs are
# connected by NVLink. Pipeline and data parallelism use the slower links between nodes or racks (Narayanan et al. 2021).

# %% [markdown]
# > **On GPUs.** A float32 convolution may round its inputs to TF32, which has 10 bits of fraction. To prevent this, set `torch.backends.cudnn.conv.fp32_precision = "ieee"`, or `torch.backends.cudnn.allow_tf32 = False` in older code. Use only one of these settings, since PyTorch raises an error
# > if you mix them. Compare a split layer with the whole layer in float64. NCCL adds in an order that depends on size and algorithm, so allow a tolerance unless all numbers are integers. An all-reduce on the GPU's current stream delays later kernels but not Python, so a clock around it
# > measures only the launch unless you call `torch.cuda.synchronize()`.

# %% [markdown]
# The other reason to split a layer is **memory**. The ledger asks the operating system by how much a rank's process grows at the peak of a step, including
# outputs, gradients and received messages. The numbers are rank 0's, and for the two splits they differ a little from run to run, because gloo keeps each
# message in memory for a moment.

# %% tags=["measured"]
# %%px
def peak_mib(layer, side):
    image = torch.randn(4, 64, side, side, device=device, requires_grad=True)
    for _ in range(2):  # the first run loads what it needs from the libraries
        image.grad = None
        layer.zero_grad()
        with Ledger(memory=True) as ledger:
            layer.to(device)(image).sum().backward()
    return ledger.peak_bytes / 2**20

layers = {"nn.Conv2d": nn.Conv2d(64, 32, 3, padding=1),
          "out split": links.ParallelConv2d(c, 64, 32, 3, padding=1, split="out"),
          "in split": links.ParallelConv2d(c, 64, 32, 3, padding=1, split="in")}
peaks = {name: [peak_mib(layer, side) for side in (32, 64)]
         for name, layer in layers.items()}
if rank == 0:
    for name, values in peaks.items():
        print(f"{name:<9}  weight {layers[name].weight.numel() / 256:>3.0f} KiB  peak at "
              f"side 32, 64:", *(f"{value:5.1f} MiB" for value in values))

# %% [markdown]
# The weight, its gradient and an optimiser's state shrink to a quarter. Of these, the step itself creates only the gradient, which is small compared with the
# images.
#
# The activations shrink less. After the join or the sum, every rank has the whole output again, and in the backward pass it has the whole gradient of x. For
# large images, the in split still saves some memory, since its convolution works on a quarter of x's channels. However, the out split takes even *more* memory
# than a single process, because each rank's convolution creates a gradient for all of x, and summing these gradients takes memory for the messages that arrive.
# If you split the batch or the image into four instead, all activations shrink to about a quarter.
#
# ## Cut the image: a halo exchange
#
# Suppose that a batch is one high-resolution image, such as a scan or a satellite photo. Its activations fill a device, there is no batch to distribute, and
# both channel splits move all activations. In this case, we split the *image*. Each rank has the whole weight and some **rows** of the image, with all
# channels. Since a 3 x 3 filter reads one row beyond its output, a rank needs one row of its neighbour at each cut (its **halo**).
#
# In `functions.alltoall`, each rank passes one tensor for every rank. Here, it is a row for a neighbour and an empty tensor for any other rank. The backward
# pass returns the gradient of a halo row to its owner, where autograd adds it to the gradient of the row itself.

# %% tags=["setup"]
# %%px --setup
def with_halo(x):
    """Add a row of each neighbour, or of zeros at the edge of the image, to this rank's
    rows x: [batch, channels, rows, columns]."""
    top, bottom, nothing = x[:, :, :1], x[:, :, -1:], x[:, :, :0]
    came = functions.alltoall(c, [top if r == rank - 1 else bottom if r == rank + 1
                                  else nothing for r in range(size)])
    above = came[rank - 1] if rank > 0 else torch.zeros_like(top)
    below = came[rank + 1] if rank < size - 1 else torch.zeros_like(top)
    return torch.cat([above, x, below], dim=2)

# %% [markdown]
# **Predict.** The five rows of our x are split into 2, 1, 1 and 1, and each rank computes the loss of its own rows. Are its gradients four times too large
# again? Which of the three gradients are incomplete until they are summed over the ranks?

# %%
# Run this cell to make your prediction.
predict("13-rows", "Split by rows, which gradients are incomplete before a sum over ranks?",
        ["x's", "the weight's and the bias's", "all three", "none"])

# %%
# %%px
here = shard(5, rank, size)
x_here, w_here, b_here = leaves(x[:, :, here], weight, bias)
# the halo is the padding of the rows
y = conv2d(with_halo(x_here), w_here, b_here, padding=(0, 1))
(y * slope[:, :, here]).sum().backward()
summed = (told(c.allreduce(w_here.grad), right_weight),
          told(c.allreduce(b_here.grad), right_bias))
print(f"y equal: {torch.equal(y, whole[:, :, here])}; x: "
      f"{told(x_here.grad, right_x[:, :, here])}; weight: "
      f"{told(w_here.grad, right_weight)}, "
      f"summed: {summed[0]}; bias, summed: {summed[1]}")

# %%
# Run this cell to compare your prediction with the outcome.
def complete(own, right):
    return all(told == "1 x right" for told in cluster.pull(f"told({own}.grad, {right})"))

def lacking():
    found = (complete("x_here", "right_x[:, :, here]"), complete("w_here", "right_weight"),
             complete("b_here", "right_bias"))
    return {(False, True, True): "x's", (True, False, False): "the weight's and the bias's",
            (False, False, False): "all three", (True, True, True): "none"}[found]

settle("13-rows", lacking)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The four losses are parts of one loss, so their sum is the right objective and nothing counts four times. The gradient of x is complete, since the halo's
# gradient has returned to its owner. The weight, however, has seen only the rank's own rows. As in data parallelism, the parts of its gradient must be added
# up, at any time before the optimiser's step.
# </details>
#
# A halo row has $B c_{in} s$ numbers, and $2(N-1)$ of these rows are sent in each pass, for a total of $4(N-1) \cdot 4 B c_{in} s$ bytes. These
# bytes grow with the *side* of the image, while the bytes of a channel split grow with its area:

# %%
# %%px
def sent_for_one_image(way, side, channels=16):
    image, layer = (torch.randn(1, channels, side, side),
                    nn.Conv2d(channels, channels, 3, padding=(0, 1), bias=False))
    if way == "by rows":
        image = image[:, :, shard(side, rank, size)]
    else:
        layer = links.ParallelConv2d(c, channels, channels, 3, padding=1, bias=False,
                                     split=way.split()[0])
    layer, image = layer.to(device), image.to(device).requires_grad_()
    with Ledger() as ledger:
        layer(with_halo(image) if way == "by rows" else image).sum().backward()
    return sum(c.allgather_obj(ledger.bytes_sent))

for way in ("out split", "in split", "by rows"):
    bytes_sent = [sent_for_one_image(way, side) for side in (16, 64, 256)]
    if rank == 0:
        print(f"{way:<9}  side 16, 64, 256:", *(f"{number:>10,}" for number in bytes_sent),
              "bytes")

# %% [markdown]
# Summing the weight's gradient adds $4 (N-1) \cdot 2 \lvert w \rvert$ bytes, which is 55,296 for 16 x 16 x 9 weights and images of any size. This sum overlaps
# with computation. Although the halos are on the critical path, the inner rows need none, so a good implementation convolves these rows while the halos travel
# (Dryden et al., *Finer-Grained Parallelism*, 2019). Each layer needs its own exchange. A stride or a pooling layer must fit the cuts, and batch norm must see
# all rows.
#
# The same exchange runs over **MPI**. The script [scripts/13_halo.py](scripts/13_halo.py) trains two such layers and compares them with a single process. Under
# `mpirun`, `comm.create_communicator()` uses MPI, and under `torchrun` gloo or NCCL. You can start the script anywhere with `mpirun -n 4 python 13_halo.py`,
# which uses an image of 22 rows.

# %%
run = cluster.launch("scripts/13_halo.py", with_="mpirun", nodes=1, ranks_per_node=2)

# %% [markdown]
# ## Two layers, one communication
#
# The out split leaves each rank with some complete channels, which are exactly what the in split needs as its input. If the first layer of a pair is split by
# rows and the second by columns, no join between them is necessary. A ReLU between them does no harm because it works on each number separately.
#
# **Predict.** The hidden tensor has 500 numbers and y has 300, with 8 bytes each (float64). The sum costs 8 (N-1) times 2 |y|, which is 14,400 bytes. How many
# bytes does the join cost?

# %%
# Run this cell to make your prediction.
predict("13-join", "How many bytes does joining 500 numbers of 8 bytes on 4 ranks cost?",
        unit="bytes", within=0.01)

# %%
# %%px
torch.manual_seed(1)
first, second = (torch.randint(-3, 4, (10, 6, 3, 3)).double().to(device),
                 torch.randint(-3, 4, (6, 10, 3, 3)).double().to(device))
here = shard(10, rank, size)

def forward(join):
    hidden = relu(conv2d(x, first[here], padding=1))
    if join:
        # joined and split again
        hidden = torch.cat(functions.allgather(c, hidden), dim=1)[:, here]
    return c.allreduce(conv2d(hidden, second[:, here], padding=1))

sent = {}  # bytes sent by all ranks
for join in (True, False):
    with Ledger() as ledger:
        y = forward(join)
    equal = torch.equal(y, conv2d(relu(conv2d(x, first, padding=1)), second, padding=1))
    sent[join] = sum(c.allgather_obj(ledger.bytes_sent))
    if rank == 0:
        print(f"{'with' if join else 'without'} the join: equal to one process: {equal}; "
              f"{sent[join]} bytes in forward")

# %%
# Run this cell to compare your prediction with the outcome.
settle("13-join", lambda: cluster.pull("sent[True] - sent[False]")[0])

# %% [markdown]
# The join costs 3 x 8 x 500 bytes and the sum 2 x 3 x 8 x 300 bytes. Megatron-LM (Shoeybi et al. 2019) splits every pair of matrices in a transformer in this
# way, the first by outputs and the second by inputs, with one all-reduce in each direction. However, Megatron writes $Y = X A$, where the outputs are the
# *columns* of $A$. Therefore, Megatron and PyTorch (`ColwiseParallel`, `RowwiseParallel`) call our rows *column parallel* and our columns *row parallel*.
#
# ## Train with it
#
# On handwritten digits, we train a small network whose first convolution is split by output channel and whose second is split by input channel. All ranks draw
# their initial values from the same seed, and `links.ParallelConv2d` takes its part of what `nn.Conv2d` would have drawn. For comparison, every rank also
# trains the network with whole layers. (Each `ParallelConv2d` takes and returns all channels, so there is still a join between the two convolutions. In the
# lab, you train a pair without it.)

# %%
# %%px
def network(first, second):
    torch.manual_seed(0)
    layers = (first(), nn.ReLU(), second(), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
              nn.Linear(14 * 16, 10))
    return nn.Sequential(*layers).double().to(device)

parallel = network(lambda: links.ParallelConv2d(c, 1, 10, 3, padding=1, split="out"),
                   lambda: links.ParallelConv2d(c, 10, 14, 3, padding=1, split="in"))
serial = network(lambda: nn.Conv2d(1, 10, 3, padding=1),
                 lambda: nn.Conv2d(10, 14, 3, padding=1))
images, labels = (torch.from_numpy(array).to(device) for array in digits("train"))
images = images.view(-1, 1, 8, 8).double()  # so that rounding does not grow during training
held = [sum(p.numel() for p in model[:3].parameters()) for model in (parallel, serial)]
print(f"{held[0]} of {held[1]} weights and biases of the convolutions are here")

# %% [markdown]
# Rank 0 holds 3 filters of the first convolution with their biases, and 3 input channels of the second convolution's 14 filters. It has 14 more numbers than
# rank 1, because the package keeps the bias of an in split on rank 0, where it is added once.

# %%
# %%px
optimisers = [torch.optim.Adam(model.parameters(), lr=0.03) for model in (parallel, serial)]
for step in range(40):
    batch = slice(step % 5 * 300, step % 5 * 300 + 300)
    losses = [cross_entropy(model(images[batch]), labels[batch])
              for model in (parallel, serial)]
    for loss, optimiser in zip(losses, optimisers):
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    if step % 20 == 19 and rank == 0:
        print(f"step {step + 1}: loss {losses[0].item():.3f}, one process "
              f"{losses[1].item():.3f}")

# %%
# %%px
test_images, test_labels = (torch.from_numpy(array).to(device) for array in digits("test"))
with torch.no_grad():
    outputs = [model(test_images.view(-1, 1, 8, 8).double())
               for model in (parallel, serial)]
correct = (outputs[0].argmax(1) == test_labels).float().mean().item()
print(f"accuracy {correct:.2f}, outputs as one process's to 1e-6: "
      f"{torch.allclose(*outputs, atol=1e-6)}")

# %% [markdown]
# ## Summary
#
# * In an out split, every rank needs the whole x, y is joined, and x's gradient is summed. In an in split, y is summed and the bias is added once.
# * Gradients are four times too large if the sum of four equal losses was differentiated. You can divide the gradients, or use operators whose backward pass
#   takes into account that the loss is replicated.
# * To find out whether a layer is dense or grouped, feed it one channel at a time. In a dense layer, every output reacts.
# * Activations grow with the batch and the image, while weight gradients do not. Channel splits suit small images with many channels. They also need fast
#   links, since their messages are on the critical path.
# * For one large image, split its rows. The halos grow with its side and not with its area, and the weight's gradient is summed as in data parallelism.
# * If the first of two layers is split by outputs and the second by inputs (column parallel and then row parallel in Megatron), they need one sum instead of a
#   join and a sum.
#
# **Now the lab:** write the dense layer, with both splits, from `c.allreduce` and `functions.allgather`. Unit 15 then splits a transformer's layers in the same
# way, also with DTensor.
#
# **References.** M. Shoeybi et al. 2019, *Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism*,
# [arXiv 1909.08053](https://arxiv.org/abs/1909.08053), section 3. A. Krizhevsky 2014, *One weird trick for parallelizing convolutional neural networks*,
# [arXiv 1404.5997](https://arxiv.org/abs/1404.5997). N. Dryden et al. 2019, *Channel and Filter Parallelism for Large-Scale CNN Training*, SC19; *Improving
# Strong-Scaling of CNN Training by Exploiting Finer-Grained Parallelism*, [arXiv 1903.06681](https://arxiv.org/abs/1903.06681). D. Narayanan et al. 2021,
# *Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM*, [arXiv 2104.04473](https://arxiv.org/abs/2104.04473). The published layer:
# [ChainerMN's example](https://github.com/chainer/chainer/tree/master/examples/chainermn/parallel_convolution).

# %%
cluster.stop()
