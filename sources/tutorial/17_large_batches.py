# %% [markdown] unit={"minutes": 30, "ranks": 1, "framework": "torch", "title": "Large batches"}
# # 17 Large batches
#
# With more ranks, you can train with larger batches in fewer steps. From a certain batch size on, however, a network learns less in the same number of epochs.
# (This is true for synchronous updates, in which the gradients of all ranks form one step. With asynchronous updates, each worker's small batch is a separate
# step, and the problem is stale gradients, as unit 09 shows.) At the end, you can
#
# * show that too large a batch costs accuracy, and state how sure you are of it.
# * choose the learning rate for a batch that is k times as large, by the linear or the square-root rule, and explain where each rule comes from.
# * explain what warm-up and LARS are good for, and when they have no effect.
# * measure the noise of a gradient, and predict from it which batch sizes are worth their cost.
# * let the batch grow where the rate would fall, and obtain the same learning curve in fewer steps.
#
# **Before:** you can train a network in PyTorch, and unit 01 explains why a batch may be distributed. **Minutes:** 30 · **Ranks:** none.

# %% [markdown]
# ## One process is enough
#
# Unit 01 showed that a step depends on the rows of the batch and not on which rank computes their gradients. For example, 32 ranks with 8 images each take
# the same step as a single process with 256 images. Therefore, you can learn everything about *large batches* in this kernel.
#
# The result of a single run means little, because a different start or a different order of the images gives a different error. For this reason, we train
# **eight runs at once**. Every tensor has a leading dimension of 8, and `torch.baddbmm` multiplies the matrices of all runs in one call, so eight runs cost
# less than eight times as much as one.

# %% tags=["setup"]
import torch

from manyhands import predict, settle
from manyhands.checks.large_batches import task as tasks
from manyhands.checks.large_batches.task import Task, train

torch.set_num_threads(1)
task = Task(tasks.plain_digits(), batch=8)
weights = task.start()
print("weights:  ", [tuple(weight.shape) for weight in weights])
print("gradients:", [tuple(gradient.shape) for gradient in task.gradient(weights)], "of",
      task.seen, "images in each run")

# %% [markdown]
# `task.gradient` computes the gradients of the next batch of every run. `train` takes steps with momentum 0.9 until 8 epochs are used up, and it asks
# `rate_at(epoch)` for the learning rate of each step.
#
# $$ v \leftarrow 0.9\,v + \epsilon\,g, \qquad w \leftarrow w - v $$
#
# <details><summary>What is different in PyTorch's SGD?</summary>
#
# PyTorch's SGD multiplies by the rate in the second formula instead, with $v \leftarrow 0.9\,v + g$ and $w \leftarrow w - \epsilon v$. As long as the rate is
# constant, the two versions are equivalent.
# </details>

# %% tags=["setup"]
rows = {}  # name -> {batch: (mean error, standard deviation)}

def report(name, task, weights):
    test, learned = task.error(weights), task.error(weights, train=True)
    mean, spread = float(test.mean().round(1)), float(test.std(ddof=1).round(1))
    rows.setdefault(name, {})[task.batch] = mean, spread
    print(f"{name:<18} batch {task.batch:>4}, {task.steps:>4} steps: {mean:>4.1f} ± "
          f"{spread:.1f} % wrong, {learned.mean():>4.1f} % of the training images")

def dropped(epoch):
    """Return 1, then a quarter from epoch 4 on, and a sixteenth from epoch 6 on."""
    return 1 / 4 ** ((epoch >= 4) + (epoch >= 6))

# %% [markdown]
# ## Does the gap appear on the digits?
#
# We train on the 1500 digits, first with batches of 8 and the rate 0.04. Then we use batches 32 times as large, first with the same rate and then with 32 times
# the rate.

# %%
for batch, rate in ((8, 0.04), (256, 0.04), (256, 32 * 0.04)):
    task = Task(tasks.plain_digits(), batch)
    report(f"rate {rate:g}", task, train(task, lambda epoch: rate * dropped(epoch)))

# %% [markdown]
# With the old rate, the network has learned far less from large batches, because it took 46 steps instead of 1500. Scaling up the rate makes up for most of
# this loss. What remains is a gap of five of 297 test images. Since single runs differ by about as much, it takes all eight runs to see this gap. Such a small
# test set shows that the rate matters, but it hardly shows at which batch size scaling the rate fails.
#
# ## A harder set
#
# `distorted_digits` makes 4096 images from the digits. The images are drawn with replacement, rotated by up to 12 degrees and shifted by up to 0.8 pixels, and
# noise is added. A fifth of the training labels are drawn again at random, which makes 18 % of the labels wrong. The test set has 1188 distorted copies of the
# test digits, with right labels.

# %% tags=["setup"]
def watching(task, kept, curve):
    """Return a function that keeps the weights and (epoch, steps, mean error) after each
    epoch."""
    begun = len(tasks.PASSED)  # every batch of every task is counted there

    def watch(epoch, weights):
        if epoch == int(epoch):
            kept[int(epoch)] = [weight.clone() for weight in weights]
            curve.append((int(epoch), len(tasks.PASSED) - begun,
                          float(task.error(weights).mean().round(1))))

    return watch

# %%
digits, at_epoch, rate_falls = tasks.distorted_digits(seed=0), {}, []
rows.clear()
task = Task(digits, batch=8)
report("small batch", task, train(task, lambda epoch: 0.04 * dropped(epoch),
                                  watch=watching(task, at_epoch, rate_falls)))

# %% [markdown]
# The error of the small batch is the reference for the whole unit. The number after ± is the standard deviation over the eight runs. The *mean* of the runs is
# known to within about a third of this deviation (divide it by $\sqrt 8$).
#
# ## The same epochs, fewer steps
#
# **Predict.** Eight epochs with batches of 256 use the same images and the same amount of computation as eight epochs with batches of 8, but take only a 32nd
# of the steps. If the rate stays at 0.04, what percentage of the digits is classified wrongly?

# %%
# Run this cell to make your prediction.
predict("17-few-steps", "What share is wrong with 32 times the batch at the same rate?",
        ["less than 20 %", "20 to 30 %", "more than 30 %"])

# %%
def series(name, batches, rate_of, **options):
    for batch in batches:
        task = Task(digits, batch)
        full = rate_of(batch / 8)
        report(name, task, train(task, lambda epoch: full * dropped(epoch), **options))

series("same rate", (128, 256), lambda k: 0.04)

# %%
# Run this cell to compare your prediction with the outcome.
def wrong():
    percent = rows["same rate"][256][0]
    if percent > 30:
        return "more than 30 %"
    return "less than 20 %" if percent < 20 else "20 to 30 %"

settle("17-few-steps", wrong)

# %% [markdown]
# <details><summary>Why?</summary>
#
# The rate determines how far a step goes, and there are only a 32nd as many steps. The error on the *training* images is large as well, so the network has not
# overfitted; it has learned too little. Therefore, the steps must become longer before we can discuss generalisation.
# </details>
#
# ## How much longer?
#
# **Linear** (Krizhevsky 2014, Goyal et al. 2017): k small steps at almost the same weights equal one step that is k times as long, along the mean of their k
# gradients. If you multiply the batch by k, multiply the rate by k.
#
# **Square root:** a batch k times as large has gradients with a k-th of the variance. To keep the variance of a *step*, multiply the rate only by $\sqrt k$.
#
# **Predict.** With 32 times the batch, which rule, linear or square root, comes closer to the small batch's error?

# %%
# Run this cell to make your prediction.
predict("17-rule", "With 32 times the batch, which rule comes closer to the small batch?",
        ["linear", "square root"])

# %%
series("square root", (128, 256), lambda k: 0.04 * k ** 0.5)
series("linear", (32, 128, 256, 512, 1024), lambda k: 0.04 * k)

# %%
# Run this cell to compare your prediction with the outcome.
settle("17-rule", lambda: min("linear", "square root", key=lambda rule: rows[rule][256]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# In a training run of many steps, the variances of k small steps add up, too, so k steps have k times the variance of one. A single step that replaces k steps
# may be as noisy as all k of them together, so the rate may grow by a factor of k. The square-root rule, in contrast, compares one large step with one small
# step.
#
# For **Adam**, a square-root rule with additions holds (Malladi et al. 2022). Adam divides by the size of the gradient. Where noise dominates, this size is
# smaller by a factor of $\sqrt k$ for the larger batch, so the rate grows only by a factor of $\sqrt k$, and $\epsilon$ in the denominator falls by a factor of
# $\sqrt k$. Since Adam's averages must reach back over as many images as before, $1 - \beta_1$ and $1 - \beta_2$ grow by a factor of k. All of this holds while
# noise dominates. Beyond the noise scale (defined below), the size of the gradient stays the same and the rule fails.
#
# The linear rule holds as long as the gradients of the k small steps would have been almost the same. If a step is too long for the curvature, less noise does
# not make it shorter, so the rule has a limit.
# </details>
#
# ## Warm-up
#
# At the start of training, the weights change fast, so the gradients of k small steps are not the same at all. Goyal et al. start with the small batch's rate
# and increase it linearly to k times that rate. In our cell, this increase takes the first two epochs.

# %%
def warm(full, epoch, warm_up=2):
    return 0.04 + (full - 0.04) * min(1, epoch / warm_up)

for batch in (128, 256, 512, 1024):
    task, full = Task(digits, batch), 0.04 * batch / 8
    report("linear, warm-up", task, train(task, lambda epoch: warm(full, epoch)
                                          * dropped(epoch)))

# %% [markdown]
# <details><summary>What it does here</summary>
#
# Here, warm-up has no effect that exceeds the spread of the runs. A network with one hidden layer starts gently, so an early step that is slightly wrong costs
# nothing. A warm-up also has a cost, because little is learned while the rate is small.
# </details>
#
# Warm-up is needed where the first steps are rough, for example in deep networks, with batch norm that sees different rows, or after a badly scaled start.
# We create a badly scaled start by making all weights five times as large.

# %%
for warm_up in (0, 2):
    task = Task(digits, batch=256)
    gentle, full = task.start(), 0.04 * 32
    task.start = lambda: [5 * weight for weight in gentle]
    rate = (lambda epoch: warm(full, epoch)) if warm_up else (lambda epoch: full)
    rough = task.error(train(task, lambda epoch: rate(epoch) * dropped(epoch)))
    print(f"rough start, warm-up of {warm_up} epochs: {rough.mean():.1f} ± "
          f"{rough.std(ddof=1):.1f} % wrong")

# %% [markdown]
# ## A rate for each layer
#
# **LARS** (You et al. 2017) multiplies each layer's rate by the length of the layer's weights and divides it by the length of its gradient. The length of a
# step is then a fraction of the weights' length, no matter how long the gradient is. Where either length is zero, LARS takes the plain step. The cell leaves
# this case out, since no layer here is zero.

# %%
def norm(tensor):
    """Return the norm for each run separately: [8, 1, 1]."""
    return tensor.square().sum((1, 2), keepdim=True).sqrt()

def lars_step(weights, gradients, memory, rate, trust=0.02):
    for weight, gradient, moving in zip(weights, gradients, memory):
        ratio = trust * norm(weight) / norm(gradient).clamp(min=1e-12)
        moving.mul_(0.9).add_(rate * ratio * gradient)
        weight.sub_(moving)

for batch, rate in ((256, 2), (512, 3), (1024, 4)):  # from a short search
    task = Task(digits, batch)
    report("LARS", task, train(task, lambda epoch: rate * min(1, epoch + 0.1)
                               * dropped(epoch), step=lars_step))
task = Task(digits, 1024)
# momentum: a quarter of the linear rule's rate, with warm-up
report("lower rate", task, train(task, lambda epoch: warm(1.28, epoch) * dropped(epoch)))

# %% [markdown]
# As long as the linear rule works, LARS is no better. With batches of 1024, where the linear rule has passed its limit, LARS still trains the network. Most of
# this advantage is due to the choice of the rate, because momentum with a warm-up and the rate 1.28, a quarter of the linear rule's rate, does nearly as well
# (last line). LARS has a cost, since you must search for its rate anew. Nado et al. 2021 report the same for large networks. If their rates and schedules are
# tuned as carefully, Nesterov momentum and Adam match LARS and LAMB.
#
# ## The hockey stick
#
# Goyal et al. 2017 trained ResNet-50 on ImageNet with batches from 128 to 64k, using the linear rule with warm-up. Each of their points is the mean of five
# runs. At 8k, they also trained without warm-up.

# %%
from manyhands.plots.large_batches import hockey_stick, hockey_table

goyal = {"linear, warm-up": {128: (23.49, .12), 256: (23.60, .12), 512: (23.48, .09),
                             1024: (23.53, .08), 2048: (23.49, .11), 4096: (23.56, .12),
                             8192: (23.74, .09), 16384: (24.79, .27), 32768: (27.55, .28),
                             65536: (33.96, .80)},
         "linear": {8192: (24.84, .37)}}
small = {8: rows["small batch"][8]}
own = {name: {**small, **rows[name]} for name in ("linear, warm-up", "linear",
                                                  "square root", "same rate")}
print(hockey_table(own))
hockey_stick(own, goyal, "Goyal et al. 2017")

# %% [markdown]
# <details><summary>How to read it</summary>
#
# Your runs are on the left and the runs of Goyal et al. on the right, with separate scales, and the batch doubles from point to point. Both curves are flat
# over a wide range and then turn up where the linear rule fails. ImageNet has 300 times as many images as our set, and its elbow is at batches about 30 times
# as large. Goyal et al. scale the batch from 256 to 8k by the same factor of 32 as we do from 8 to 256.
#
# The bars show that a difference of half a point means nothing here. Look also at the error on the training images above, which grows with the test error. The
# loss of accuracy is therefore a loss in *learning*. It is not a gap in *generalisation* in the narrow sense, in which the training images are learned equally
# well (Keskar et al. 2017). Goyal et al. report the same for their runs.
# </details>
#
# ## ImageNet in 15 minutes
#
# In the picture, the linear rule with warm-up works up to batches of about 8k. In the same year as Goyal et al., Akiba, Suzuki and Fukuda (2017) of Preferred
# Networks trained the same network for the same 90 epochs with batches of **32k**, that is, 32 images on each of 1024 P100 GPUs. The training run took about
# 3500 steps and 15 minutes. The authors follow Goyal et al. with three changes:
#
# * *RMSprop warm-up:* the first steps are steps of RMSprop, which divides each gradient by its size. The update then changes gradually to momentum.
# * *Slow start:* the rate starts at half its usual value and is kept there for 40 epochs instead of 30 before it falls.
# * *Batch norm without moving averages:* with few steps, moving averages lag behind. For testing, the authors use the statistics of the last batch, averaged
#   over ranks.
#
# According to their abstract, the purpose of these techniques is *to maintain accuracy*. The paper reports an accuracy of 74.9 %, so 25.1 % of the images are
# classified wrongly. Look for this number in the right half of the picture. It is far below the 27.55 % of the linear rule at 32k, but it is above the flat
# part (23.74 % at 8k), and even above the 24.79 % at 16k. The three changes therefore win back most of what the linear rule loses at 32k, but not all of it.
#
# ## The noise of a training run
#
# Smith and Le 2018 combine the rate $\epsilon$, the momentum $m$, the number of images $N$ and the batch size $B$ in one number, the noise scale of SGD:
#
# $$ g = \frac{\epsilon}{1 - m} \left( \frac{N}{B} - 1 \right) \approx \frac{\epsilon N}{(1 - m)\,B} $$
#
# As long as the steps are short enough for the curvature and $B \ll N$, training runs with the same $g$ behave alike. The linear rule keeps $g$ constant. Where
# a schedule divides the *rate* by 4, you can multiply the *batch* by 4 instead. The noise falls in the same way, and from then on, a quarter of the steps is
# enough (Smith et al. 2018).
#
# **Predict.** The run with the small batch took 4096 steps. How many steps does a run take with batches of 8 at first, 32 from epoch 4 on, and 128 from epoch 6
# on?

# %%
# Run this cell to make your prediction.
predict("17-growing",
        "How many steps remain of 4096 if the batch of 8 grows at epochs 4 and 6?",
        unit="steps", within=0.05)

# %%
from manyhands.plots.large_batches import two_clocks

task, batch_grows = Task(digits, batch=8), []
train(task, lambda epoch: 0.04, batch_at=lambda epoch: round(8 / dropped(epoch)),
      watch=watching(task, {}, batch_grows))
clocks = {"rate falls": rate_falls, "batch grows": batch_grows}
for name, points in clocks.items():
    print(f"{name:<12}", *(f"{error:5.1f}" for _, _, error in points),
          f" % wrong after each epoch; {points[-1][1]} steps")
two_clocks({name: points[1:] for name, points in clocks.items()})

# %%
# Run this cell to compare your prediction with the outcome.
settle("17-growing", lambda: batch_grows[-1][1])

# %% [markdown]
# Plotted against epochs, the curves of both runs are the same, but plotted against steps, the second curve ends much earlier. A step with a larger batch is no
# slower if there are enough ranks for it, and ranks can be added during the run.
#
# ## The noise of a gradient
#
# Which batch sizes are worth their cost? To find out, compare the noise with the signal. The gradient of one image has the covariance $\Sigma$ around the true
# gradient $G$, and the gradient of a batch of $B$ images has a $B$-th of this covariance:
#
# $$ E\,|G_B|^2 = |G|^2 + \frac{\mathrm{tr}\,\Sigma}{B}, \qquad B_\text{noise} = \frac{\mathrm{tr}\,\Sigma}{|G|^2} $$
#
# Below $B_\text{noise}$, noise dominates, and a larger batch improves the steps. Far above it, the gradient is known accurately, and more images add hardly any
# information. Two batch sizes give two equations for the two unknowns (McCandlish et al. 2018, appendix A). Both unknowns are estimated without bias. Their
# quotient is biased, but only slightly if you average over many batches before you divide.
#
# **Predict.** How does $B_\text{noise}$ after 4 epochs of training compare with $B_\text{noise}$ at the start?

# %%
# Run this cell to make your prediction.
predict("17-noise", "How does the noise scale after 4 epochs compare with the start?",
        ["smaller", "about the same", "larger"])

# %%
def squared_length(weights, batch, repeats):
    """Return the mean of |G_B|^2 over many batches and over the runs."""
    task = Task(digits, batch, epochs=32)
    found = [sum(gradient.square().sum((1, 2)) for gradient in task.gradient(weights))
             for _ in range(repeats)]
    return torch.stack(found).mean().item()

scales = {}  # epoch -> noise scale
for epoch in (0, 1, 2, 4):
    small, large = (squared_length(at_epoch[epoch], 16, 256),
                    squared_length(at_epoch[epoch], 1024, 16))
    signal, noise = ((1024 * large - 16 * small) / (1024 - 16),
                     (small - large) / (1 / 16 - 1 / 1024))
    scales[epoch] = float(f"{noise / signal:.2g}")
    print(f"after {epoch} epochs: |G|^2 {signal:.3f}, trace {noise:4.1f}, noise scale "
          f"{scales[epoch]:.0f}")

# %%
# Run this cell to compare your prediction with the outcome.
def grown():
    times = scales[4] / scales[0]
    return "larger" if times > 1.25 else "smaller" if times < 0.8 else "about the same"

settle("17-noise", grown)

# %% [markdown]
# <details><summary>Why does it grow?</summary>
#
# After the first epoch, the noise stays the same, whereas $|G|^2$ falls. What all images agree on has been learned, while what they disagree on, above all the
# wrong labels, remains. Therefore, a batch of 200 is enough early in training, whereas a larger one can be useful later.
# </details>
#
# Compare these noise scales with the hockey stick, whose elbow is between 256 and 512. The scales have the same order of magnitude, although measuring each of
# them took only 20,480 images of each run, which is five epochs. This low cost makes the noise scale useful. However, do not expect more than the right order
# of magnitude.
#
# ## The critical batch: steps against images
#
# To reach a given error, training with batches of $B$ images takes $S$ steps and $E = S B$ images. McCandlish et al. derive, and find in many tasks,
#
# $$ \frac{S}{S_\text{min}} = 1 + \frac{B_\text{crit}}{B}, \qquad \frac{E}{E_\text{min}} = 1 + \frac{B}{B_\text{crit}}, \qquad B_\text{crit} \approx
# B_\text{noise} $$
#
# if you search for the best rate for each batch. At the **critical batch**, a training run takes twice the minimal number of steps and twice the minimal number
# of images, which balances time and cost.

# %%
for batch in (8, 32, 128, 256, 1024):
    print(f"batch {batch:>4}: {1 + scales[1] / batch:4.1f} times the fewest steps, "
          f"{1 + batch / scales[1]:4.2f} times the fewest images")

# %% [markdown]
# The budget of this unit, *the same number of epochs*, is therefore a choice. Beyond the critical batch, this budget has too few images, which appears as a
# loss of accuracy. Shallue et al. (2019) counted the steps to a given error in 35 workloads, and tuned all rates for each batch. At first, twice the batch
# needs half the steps. Then the gain shrinks, and in the end there is none. The batch size at which this happens differs widely. The authors found no evidence
# that large batches increase the test error if training takes enough steps.
#
# The batches of language models are counted in tokens. According to Kaplan et al. (2020), the critical batch grows as the loss falls and reaches one to two
# million tokens near the end of training. Zhang et al. (2024) find that it grows with the amount of data that a model has seen rather than with the model's
# size. Since GPT-3, many large runs have let the batch grow:
#
# | run | tokens in a batch |
# |---|---|
# | GPT-3 (Brown et al. 2020) | from 32 thousand to 3.2 million, over the first 4 to 12 billion tokens, depending on the model's size |
# | PaLM (Chowdhery et al. 2022) | 1, then 2, then 4 million |
# | Llama 3 (Grattafiori et al. 2024) | 4, then 8 (after 252 million tokens), then 16 million (after 2.87 trillion) |
# | DeepSeek-V3 (DeepSeek-AI 2024) | from 12.6 million (3072 sequences of 4096) to 63 million, during the first 469 billion tokens |
#
# Unlike the run with a growing batch in *The noise of a training run*, these runs do not replace a falling rate by a growing batch, because their rate follows
# its own schedule. Small batches at the start use fewer tokens for each step while the noise scale is small, and large ones later keep all GPUs busy.
#
# <details><summary>The best rate, and details of the noise scale</summary>
#
# McCandlish et al. also state how the best rate grows with the batch. It is $\epsilon_\text{max} / (1 + B_\text{noise} / B)$, which is linear far below the
# noise scale and constant far above it. For MNIST, they report a noise scale of about 900. A rate that was found for one width of a network need not hold for a
# different width. With µP, Yang et al. 2022 parametrise a network so that it does. (Both $g$ and $B_\text{noise}$ are called *noise scale*. The first one
# belongs to a run, with its rate and its batch, and the second one to the task and the weights.)
#
# The batches of an epoch contain no image twice, so the estimate of $|G|^2$ is smaller by $\mathrm{tr}\,\Sigma / N$ than the square of the gradient of all $N$
# images. If the estimate becomes negative at the end of training, $N$ images are too few to show a direction. In data parallelism, the noise scale costs even
# less to measure, because one rank has the small batch, all ranks together have the large one, and every step has both gradients.
# </details>

# %% [markdown]
# ## How sure?
#
# "As good as the small batch" is a statement about means of runs. It helps to compare twins, which are runs with the same start and the same images. The
# difference $d$ of their errors has a mean and a spread. With 95 % confidence, the true mean is below $\bar d + 1.895\, s_d / \sqrt 8$ (Student's t, one-sided,
# 7 degrees of freedom).

# %%
task = Task(digits, batch=256)
weights = train(task, lambda epoch: 0.04 * 32 * dropped(epoch))
d = task.error(weights) - task.error(at_epoch[8])
print(f"batch 256 is {d.mean():.1f} points worse than batch 8 on average; with 95 % "
      f"confidence less than {d.mean() + 1.895 * d.std(ddof=1) / 8 ** 0.5:.1f}")

# %% [markdown]
# ## When, and what it costs
#
# **Use large batches** when you have many ranks and the noise scale shows that there is noise to average away, which is more often the case late in training
# than early, and on hard tasks than on easy ones. The epochs, and therefore the computation, stay the same, while the time falls with the number of steps.
#
# **Do not** go beyond the elbow of the curve, where four times as many ranks need the same number of steps.
#
# **What it costs:** you must search for the rate anew for each batch size. You also lose some accuracy, which you must measure over several runs. Batch norm
# uses the batch of one rank (unit 01), so the network is a different one when the size of that batch changes.
#
# **The three most common mistakes.** The batch grows with the number of ranks but the rate stays the same, so too little is learned. The rate grows without a
# warm-up where one is needed, or the warm-up ends in a jump. A single run is compared with a single run.
#
# <details><summary>What has aged</summary>
#
# | claim | today |
# |---|---|
# | with $p$ processes, divide the epochs by $p$ and multiply the rate by $p$ | multiply the rate by the factor of the *batch*, and keep the epochs (unit 01) |
# | a larger batch lowers the accuracy | true at the same epochs, beyond an elbow that depends on task and schedule. If trained for more steps, the gap shrinks or closes (Hoffer et al. 2017) |
# | Facebook keeps the accuracy up to 8k, PFN up to 32k | this is about ResNet-50 on ImageNet in 2017. Facebook reports 76.3 % for 8k and 76.4 % for 256, PFN 74.9 % for 32k (above). LARS was made for the second size, too (You et al. 2017), and LAMB does the same for Adam (You et al. 2020), but well-tuned Nesterov momentum and Adam match them (Nado et al. 2021) |
# | lowering the rate and growing the batch are equivalent | true as long as $B \ll N$ and SGD's noise is what matters, because at $B = N$, $g$ is zero at any rate. A rate can fall forever, whereas a batch cannot grow forever |
# | a small batch is bad because its gradient varies | true below the noise scale, although the variation costs nothing per image. See the flat part of the stick |
#
# </details>
#
# ## Summary
#
# * With the same number of epochs, accuracy is lost beyond a certain batch size. The spread of the runs shows which differences count.
# * The linear rule keeps the noise $g$ of the run constant, while the square-root rule keeps the variance of one step. For Adam, the square-root rule holds
#   while noise dominates, with changed $\beta$ and $\epsilon$.
# * Warm-up protects the first steps and LARS each layer, but neither is needed here as long as the linear rule works.
# * The noise scale is a quotient of two means, which are measured with two batch sizes. It grows during training, so the batch may grow, too. The critical
#   batch is close to the noise scale.
# * A growing batch instead of a falling rate gives the same curve in fewer steps.
#
# **Now the lab:** train with 32 times the batch in the same number of epochs. In unit 18, ranks join and are lost during training.
#
# **References.** P. Goyal et al. 2017, *Accurate, Large Minibatch SGD*, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677), figure 1 and section 5. A.
# Krizhevsky 2014, *One weird trick for parallelizing convolutional neural networks*, [arXiv 1404.5997](https://arxiv.org/abs/1404.5997). S. L. Smith, Q. V. Le
# 2018, *A Bayesian Perspective on Generalization and Stochastic Gradient Descent*, [arXiv 1710.06451](https://arxiv.org/abs/1710.06451). S. L. Smith et al.
# 2018, *Don't Decay the Learning Rate, Increase the Batch Size*, [arXiv 1711.00489](https://arxiv.org/abs/1711.00489). S. McCandlish et al. 2018, *An Empirical
# Model of Large-Batch Training*, [arXiv 1812.06162](https://arxiv.org/abs/1812.06162). Y. You et al. 2017, *Large Batch Training of Convolutional Networks*,
# [arXiv 1708.03888](https://arxiv.org/abs/1708.03888); 2020, *Large Batch Optimization for Deep Learning*,
# [arXiv 1904.00962](https://arxiv.org/abs/1904.00962). N. S. Keskar et al. 2017, *On Large-Batch Training for Deep Learning*,
# [arXiv 1609.04836](https://arxiv.org/abs/1609.04836). E. Hoffer et al. 2017, *Train longer, generalize better*,
# [arXiv 1705.08741](https://arxiv.org/abs/1705.08741). S. Malladi et al. 2022, *On the SDEs and Scaling Rules for Adaptive Gradient Algorithms*,
# [arXiv 2205.10287](https://arxiv.org/abs/2205.10287). T. Akiba, S. Suzuki, K. Fukuda 2017, *Extremely Large Minibatch SGD*,
# [arXiv 1711.04325](https://arxiv.org/abs/1711.04325). C. J. Shallue et al. 2019, *Measuring the Effects of Data Parallelism on Neural Network Training*,
# [arXiv 1811.03600](https://arxiv.org/abs/1811.03600). Z. Nado et al. 2021, *A Large Batch Optimizer Reality Check*,
# [arXiv 2102.06356](https://arxiv.org/abs/2102.06356). J. Kaplan et al. 2020, *Scaling Laws for Neural Language Models*,
# [arXiv 2001.08361](https://arxiv.org/abs/2001.08361). T. B. Brown et al. 2020, *Language Models are Few-Shot Learners*,
# [arXiv 2005.14165](https://arxiv.org/abs/2005.14165). A. Chowdhery et al. 2022, *PaLM: Scaling Language Modeling with Pathways*,
# [arXiv 2204.02311](https://arxiv.org/abs/2204.02311). G. Yang et al. 2022, *Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter
# Transfer*, [arXiv 2203.03466](https://arxiv.org/abs/2203.03466). A. Grattafiori et al. 2024, *The Llama 3 Herd of Models*,
# [arXiv 2407.21783](https://arxiv.org/abs/2407.21783). DeepSeek-AI 2024, *DeepSeek-V3 Technical Report*, [arXiv 2412.19437](https://arxiv.org/abs/2412.19437).
# H. Zhang et al. 2024, *How Does Critical Batch Size Scale in Pre-training?*, [arXiv 2410.21676](https://arxiv.org/abs/2410.21676).
