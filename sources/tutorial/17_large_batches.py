# %% [markdown] unit={"minutes": 30, "ranks": 1, "framework": "torch", "title": "Large batches"}
# # 17 Large batches
#
# More ranks can mean a larger batch and fewer steps. From some batch on, the same epochs teach less. (Strictly, this is about synchronous updates, where all ranks'
# gradients make one step. With asynchronous ones each worker's small batch is a step of its own, and gradients grow old instead: unit 09.) At the end you can
#
# * show that loss of accuracy, and say how sure you are of it;
# * choose the learning rate for a batch k times as large, by the linear and by the square-root rule, and say where each comes from;
# * say what warm-up and LARS are good for, and when they do nothing;
# * measure the noise of a gradient, and predict from it which batches are worth their cost;
# * let the batch grow where the rate would fall: the same curve, in fewer steps.
#
# **Before:** you can train a network in PyTorch; unit 01 says why a batch may be shared out. **Minutes:** 30. **Ranks:** none.

# %% [markdown]
# ## One process is enough
#
# Unit 01 has shown that a step depends on the rows of the batch, and not on who computes their gradients: 32 ranks with 8 images each take the step of one process with
# 256 images. So everything about *large batches* can be learned in this kernel. All cells run here.
#
# A result of one run says little: another start, another order of the images, another error. So we train **eight runs at once**. Every tensor has a leading dimension of 8,
# `torch.baddbmm` multiplies all of them, and eight runs cost less than eight times as much as one.

# %% tags=["setup"]
import torch

from manyhands import predict, settle
from manyhands.checks import large_batches_task as tasks
from manyhands.checks.large_batches_task import Task, train

torch.set_num_threads(1)
task = Task(tasks.plain_digits(), batch=8)
weights = task.start()
print("weights:  ", [tuple(weight.shape) for weight in weights])
print("gradients:", [tuple(gradient.shape) for gradient in task.gradient(weights)], "of",
      task.seen, "images in each run")

# %% [markdown]
# `task.gradient` takes the next batch of every run. `train` makes steps with momentum 0.9 until 8 epochs are used up; it asks `rate_at(epoch)` for the
# learning rate of each step. That is all.
#
# $$ v \leftarrow 0.9\,v + \epsilon\,g, \qquad w \leftarrow w - v $$
#
# (PyTorch's SGD has the rate outside: $v \leftarrow 0.9\,v + g$, $w \leftarrow w - \epsilon v$. While the rate stays, it is the same.)

# %% tags=["setup"]
rows = {}  # name -> {batch: (mean error, standard deviation)}

def report(name, task, weights):
    test, learned = task.error(weights), task.error(weights, train=True)
    mean, spread = float(test.mean().round(1)), float(test.std(ddof=1).round(1))
    rows.setdefault(name, {})[task.batch] = mean, spread
    print(f"{name:<18} batch {task.batch:>4}, {task.steps:>4} steps: {mean:>4.1f} ± "
          f"{spread:.1f} % wrong, {learned.mean():>4.1f} % of the training images")

def dropped(epoch):
    """1, then a quarter from epoch 4 on, and a sixteenth from epoch 6 on."""
    return 1 / 4 ** ((epoch >= 4) + (epoch >= 6))

# %% [markdown]
# ## Does the gap appear on the digits?
#
# The 1500 digits, with batches of 8 and the rate 0.04; then batches 32 times as large, with the same rate, and with 32 times the rate.

# %%
for batch, rate in ((8, 0.04), (256, 0.04), (256, 32 * 0.04)):
    task = Task(tasks.plain_digits(), batch)
    report(f"rate {rate:g}", task, train(task, lambda epoch: rate * dropped(epoch)))

# %% [markdown]
# With the old rate the large batch has learned far less: 46 steps in place of 1500. With the rate scaled up most of it is made good. What is left is five of 297 test images. Single
# runs differ by about as much, so it takes all eight to see it: a test this small shows that the rate matters, and only poorly where the scaling ends.
#
# ## A harder set
#
# `distorted_digits` makes 4096 images from them: drawn with replacement, turned by up to 12 degrees, shifted by up to 0.8 pixels, with noise; and a fifth of the training labels
# are drawn anew, so 18 % are wrong. The test has 1188 distorted copies of the test digits, with right labels.

# %% tags=["setup"]
def watching(task, kept, curve):
    """After each epoch: keep the weights, and (epoch, steps, mean error)."""
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
# That is the mark for the whole unit. ± is the standard deviation over the eight runs; their *mean* is known to about a third of it (divide by $\sqrt 8$).
#
# ## The same epochs, fewer steps
#
# **Predict.** 8 epochs with batches of 256 have the same images, the same cost of computing, and a 32nd of the steps. The rate stays 0.04. What becomes of the error?

# %%
predict("17-few-steps", "32 times the batch, the same rate: how many digits are wrong?",
        ["less than 20 %", "20 to 30 %", "more than 30 %"])

# %%
def series(name, batches, rate_of, **options):
    for batch in batches:
        task = Task(digits, batch)
        full = rate_of(batch / 8)
        report(name, task, train(task, lambda epoch: full * dropped(epoch), **options))

series("same rate", (128, 256), lambda k: 0.04)

# %%
def wrong():
    percent = rows["same rate"][256][0]
    if percent > 30:
        return "more than 30 %"
    return "less than 20 %" if percent < 20 else "20 to 30 %"

settle("17-few-steps", wrong)

# %% [markdown]
# <details><summary>Why?</summary>
#
# A step goes as far as the rate says, and there are 32 times fewer of them. The error on the *training* images is large as well: nothing has been learned too well, too little has
# been learned at all. So before anyone speaks of generalisation, the steps must become longer.
# </details>
#
# ## How much longer?
#
# **Linear** (Krizhevsky 2014, Goyal et al. 2017): k small steps at almost the same weights are one step along the mean of their k gradients, k times as long. Batch times k, rate
# times k.
#
# **Square root:** a batch k times as large has gradients with a k-th of the variance. To keep the variance of a *step*, multiply the rate by $\sqrt k$ only.
#
# **Predict.** Which one comes closer to the small batch at 32 times the batch?

# %%
predict("17-rule", "Which rule comes closer to the small batch, at 32 times the batch?",
        ["linear", "square root"])

# %%
series("square root", (128, 256), lambda k: 0.04 * k ** 0.5)
series("linear", (32, 128, 256, 512, 1024), lambda k: 0.04 * k)

# %%
settle("17-rule", lambda: min("linear", "square root", key=lambda rule: rows[rule][256]))

# %% [markdown]
# <details><summary>Why?</summary>
#
# In a training of many steps, the variances of k small steps add up too: k steps have k times the variance of one. One step that takes their place may be as noisy as all k
# of them, so the rate may grow by k. The square root compares one step with one step.
#
# For **Adam** the rule is a square root, and more than that (Malladi et al. 2022). Adam divides by the size of the gradient, and where noise rules, that is smaller by $\sqrt k$ for the larger
# batch: the rate grows by $\sqrt k$ only, and $\epsilon$ below the fraction line falls by $\sqrt k$. Its averages must reach back over as many images as before: $1 - \beta_1$ and
# $1 - \beta_2$ grow by k. All that holds while noise rules; beyond the noise scale (below) the size stays, and the rule fails.
#
# The linear rule holds as long as the k gradients would have been almost the same. A step that is too long for the curvature does not become shorter by less noise: so
# there is an end to it.
# </details>
#
# ## Warm-up
#
# At the start the weights change fast, and the k gradients are not the same at all. Goyal et al. start with the small batch's rate, and let it grow to k times that along a straight line;
# here in the first two epochs.

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
# Nothing that the spread of the runs would not hide. A network with one hidden layer starts gently, and an early step that is a little off costs it nothing. A warm-up also costs: while the rate is
# small, little is learned.
# </details>
#
# So when is it needed? Where the first steps are rough: deep networks, batch norm that sees other rows, a start that is badly scaled. The last one is easily made: all weights five times as large.

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
# **LARS** (You et al. 2017) looks at each layer by itself: the length of its weights, divided by the length of its gradient. A step then is a part of the weights' own length, whatever
# the gradient's. Where a norm is zero, LARS takes the plain step; no layer here is zero, so the cell leaves that out.

# %%
def norm(tensor):
    """Of each run by itself: [8, 1, 1]."""
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
# Within the flat part LARS is no better than the linear rule. At 1024, where that rule has come to its end, it still trains. Most of that is the choice of
# the rate: momentum with 1.28, a quarter of the linear rule's, and a warm-up does nearly as well (last line). It is not free:
# its rate must be found anew. Nado et al. 2021 say so of large networks: with rates and schedules searched as carefully, Nesterov momentum and Adam match LARS and LAMB.
#
# ## The hockey stick
#
# Goyal et al. 2017 trained ResNet-50 on ImageNet with batches from 128 to 64k, by the linear rule with warm-up; each point is the mean of five runs. At 8k they also left the
# warm-up out.

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
# Left yours, right theirs, each with its own scales; the batch doubles to the right. Both are flat for a long way, then turn up: there the linear rule ends. ImageNet has 300 times the images, and its
# elbow lies at batches about 30 times as large. Their 8k is 32 times their 256, as our 256 is 32 times our 8.
#
# Note what the bars say: a difference of half a point is nothing here. And look at the training images above: their error grows with that of the test. What is lost is lost in *learning*; a gap in
# *generalisation* in the narrow sense, with the training images learned equally well (Keskar et al. 2017), it is not. Goyal et al. say the same of theirs.
# </details>
#
# ## ImageNet in 15 minutes
#
# In the picture the linear rule with warm-up ends near 8k. In the same year Akiba, Suzuki and Fukuda (2017), of Preferred Networks, trained the same network for the same 90 epochs with batches of **32k**, which
# were 32 images on each of 1024 P100 GPUs. The training run took about 3500 steps and 15 minutes. They follow Goyal et al. with three changes:
#
# * *RMSprop warm-up:* the first steps are steps of RMSprop, which divides each gradient by its size; they pass over to momentum little by little.
# * *Slow start:* half the rate, for 40 epochs and not 30, before it falls.
# * *Batch norm without moving averages:* with few steps they lag behind; the statistics of the last batch, averaged over the ranks, are used for testing.
#
# According to their abstract, these techniques are there *to maintain accuracy*. The paper reports 74.9 %, so 25.1 % of the images are wrong. Look for this number on the right of the picture. It is far below the 27.55 %
# of the linear rule at 32k, but it is above the flat part (23.74 % at 8k), even above the 24.79 % at 16k. So the three changes win back most of what the linear rule loses at 32k, and not all of it.
#
# ## The noise of a training
#
# Smith and Le 2018 put the rate $\epsilon$, the momentum $m$, the number of images $N$ and the batch $B$ into one number, the noise scale of SGD:
#
# $$ g = \frac{\epsilon}{1 - m} \left( \frac{N}{B} - 1 \right) \approx \frac{\epsilon N}{(1 - m)\,B} $$
#
# As long as the steps are short enough for the curvature and $B \ll N$, trainings with one $g$ behave alike. The linear rule keeps it. And where a schedule lets the *rate* fall by 4, the *batch* could grow by 4: the noise falls the same way, and
# from there on a quarter of the steps is enough (Smith et al. 2018).
#
# **Predict.** The small batch's training took 4096 steps. How many does it take with batches of 8, then 32 from epoch 4 on, then 128 from epoch 6 on?

# %%
predict("17-growing",
        "4096 steps with batches of 8: how many, if the batch grows at epochs 4 and 6?",
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
settle("17-growing", lambda: batch_grows[-1][1])

# %% [markdown]
# Both have the same curve against epochs, and against steps the second one ends much earlier. A step of a larger batch is no slower if there are ranks for it, and these can be added during the run.
#
# ## The noise of a gradient
#
# Which batches are worth their cost? Compare the noise with the signal. One image's gradient has the covariance $\Sigma$ around the true gradient $G$; a batch of $B$ has a $B$-th of it:
#
# $$ E\,|G_B|^2 = |G|^2 + \frac{\mathrm{tr}\,\Sigma}{B}, \qquad B_\text{noise} = \frac{\mathrm{tr}\,\Sigma}{|G|^2} $$
#
# Below $B_\text{noise}$ noise rules, and a larger batch makes steps better; far above it, the gradient is known, and more images say nothing new. Two batch sizes give two equations for the two unknowns
# (McCandlish et al. 2018, appendix A). Averages first, the quotient last: so both unknowns are estimated without bias. Their quotient is not, but nearly, when many batches are averaged.
#
# **Predict.** Is $B_\text{noise}$ the same at the start of training and at its end?

# %%
predict("17-noise", "The noise scale after 4 epochs, compared with the start, is ...",
        ["smaller", "about the same", "larger"])

# %%
def squared_length(weights, batch, repeats):
    """The mean of |G_B|^2 over many batches, for each run."""
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
def grown():
    times = scales[4] / scales[0]
    return "larger" if times > 1.25 else "smaller" if times < 0.8 else "about the same"

settle("17-noise", grown)

# %% [markdown]
# <details><summary>Why does it grow?</summary>
#
# After the first epoch the noise stays what it is, and $|G|^2$ falls: what all images agree on has been learned, and what they disagree on remains, wrong labels above all. So early in
# training a batch of 200 is enough, and later one can use more.
# </details>
#
# Compare with the stick: its elbow is between 256 and 512, and these numbers are of that size. That is what the noise scale is for, because each number took only 20,480 images of each run, as many as five epochs have.
# (In data parallelism it is cheaper still. One rank has the small batch, all ranks together have the large one, and every step has both gradients.) Expect the right order of magnitude, and not more.
#
# ## The critical batch: steps against images
#
# To reach a given error with batches of $B$ takes $S$ steps and $E = S B$ images. McCandlish et al. derive, and find in many tasks,
#
# $$ \frac{S}{S_\text{min}} = 1 + \frac{B_\text{crit}}{B}, \qquad \frac{E}{E_\text{min}} = 1 + \frac{B}{B_\text{crit}}, \qquad B_\text{crit} \approx B_\text{noise} $$
#
# when the rate is searched for each batch. At the **critical batch** a training takes twice the fewest steps, and twice the fewest images: time against cost, fairly shared.

# %%
for batch in (8, 32, 128, 256, 1024):
    print(f"batch {batch:>4}: {1 + scales[1] / batch:4.1f} times the fewest steps, "
          f"{1 + batch / scales[1]:4.2f} times the fewest images")

# %% [markdown]
# So "the same epochs", the budget of this unit, is a choice: beyond the critical batch the missing images show up as a loss of accuracy. Shallue et al. (2019) counted steps to a given error in 35 workloads,
# and searched all rates anew. At first, twice the batch takes half the steps; then less is gained, and in the end nothing. Where this happens differs widely. They found no evidence that large batches do worse on the
# test when they are given the steps.
#
# Language models count tokens. Kaplan et al. (2020) put the critical batch at one to two million tokens near the end of training, and it grows as the loss falls.
# Zhang et al. (2024) find that it grows with the data that a model has seen rather than with its size. Since GPT-3, many large runs let the batch grow:
#
# | run | tokens in a batch |
# |---|---|
# | GPT-3 (Brown et al. 2020) | from 32 thousand to 3.2 million, over the first 4 to 12 billion tokens, depending on the model's size |
# | PaLM (Chowdhery et al. 2022) | 1, then 2, then 4 million |
# | Llama 3 (Grattafiori et al. 2024) | 4, then 8 (after 252 million tokens), then 16 million (after 2.87 trillion) |
# | DeepSeek-V3 (DeepSeek-AI 2024) | from 12.6 million (3072 sequences of 4096) to 63 million, during the first 469 billion tokens |
#
# Unlike the growing batch in *The noise of a training* above, these runs do not trade the batch for the rate, because their rate follows its own schedule. Small batches at the start use fewer tokens for each step while the noise scale is small, and large ones later
# keep all GPUs busy. (A rate that was found for one width need not hold for a different one either. Yang et al. 2022 parametrise a network, by µP, such that it does.)
#
# McCandlish et al. also say how the best rate grows with the batch, $\epsilon_\text{max} / (1 + B_\text{noise} / B)$: linear far below the noise scale, constant far above it. For MNIST they report a noise scale of
# about 900. (Both $g$ and $B_\text{noise}$ are called *noise scale*. The first one belongs to a run, with its rate and its batch, and the second one to the task and the weights.)
#
# Batches of an epoch have no image twice, so the square that is measured is smaller by $\mathrm{tr}\,\Sigma / N$ than the square of the gradient of all $N$ images. If it becomes negative at the end of training, $N$ images
# are too few to see a direction.

# %% [markdown]
# ## How sure?
#
# "As good as the small batch" is a statement about means of runs. Twins help: the run with the same start and the same images. Their difference $d$ has a mean and a spread, and with
# 95 % confidence the true mean is below $\bar d + 1.895\, s_d / \sqrt 8$ (Student's t, one-sided, 7 degrees of freedom).

# %%
task = Task(digits, batch=256)
weights = train(task, lambda epoch: 0.04 * 32 * dropped(epoch))
d = task.error(weights) - task.error(at_epoch[8])
print(f"batch 256 is {d.mean():.1f} points worse than batch 8 on average; with 95 % "
      f"confidence less than {d.mean() + 1.895 * d.std(ddof=1) / 8 ** 0.5:.1f}")

# %% [markdown]
# ## When, and what it costs
#
# **Use large batches** when you have many ranks and the noise scale says that there is noise to average away: late in training more than early, on hard tasks more than on easy
# ones. The epochs, and so the computing, stay the same; the time falls with the steps.
#
# **Do not** go beyond the elbow, where four times the ranks need the same number of steps.
#
# **What it costs:** a search for the rate, once more for each batch; then some accuracy, which you must measure over several runs. Batch norm looks at the batch of one rank (unit 01), so it is
# a different network when that changes.
#
# **The three most common mistakes.** The batch grows with the ranks, and the rate stays: too little is learned. The rate grows, and there is no warm-up where one is needed, or
# it ends in a jump. One run is compared with one run.
#
# <details><summary>What has aged</summary>
#
# | they say | today |
# |---|---|
# | with $p$ processes, divide the epochs by $p$, multiply the rate by $p$ | the rate by the factor of the *batch*; the epochs stay (unit 01) |
# | a larger batch lowers the accuracy | at the same epochs, beyond an elbow that depends on task and schedule. Trained for more steps the gap shrinks or closes (Hoffer et al. 2017) |
# | Facebook keeps the accuracy up to 8k, PFN up to 32k | for ResNet-50 on ImageNet in 2017. Facebook reports 76.3 % for 8k and 76.4 % for 256, PFN 74.9 % for 32k (above). LARS was made for the second size, too (You et al. 2017), LAMB does the like for Adam (You et al. 2020); tuned well, Nesterov momentum and Adam match them (Nado et al. 2021) |
# | lowering the rate and growing the batch are equivalent | as long as $B \ll N$ and SGD's noise is what matters: at $B = N$, $g$ is zero at any rate. A batch cannot grow for ever, a rate can fall for ever |
# | a small batch is bad because its gradient varies | below the noise scale that is so; the variation also costs nothing per image. See the flat part of the stick |
#
# </details>
#
# ## What you can say now
#
# * *Accuracy is lost* in the same epochs beyond an elbow, and the spread of the runs says which differences count.
# * *The linear rule* keeps the noise $g$ of the run, *the square root* the variance of one step. Adam takes the root while noise rules, with changed $\beta$ and $\epsilon$.
# * *Warm-up* protects the first steps, *LARS* each layer; within the flat part neither is needed.
# * *The noise scale* is a quotient of two means, from two batch sizes. It grows during training, so the batch may grow too. Near it is the critical batch.
# * *A growing batch* instead of a falling rate gives the same curve in fewer steps.
#
# **Now the lab:** 32 times the batch in the same epochs. Then unit 18, where ranks come and go.
#
# **References.** P. Goyal et al. 2017, *Accurate, Large Minibatch SGD*, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677), figure 1 and section 5. A. Krizhevsky
# 2014, *One weird trick for parallelizing convolutional neural networks*, [arXiv 1404.5997](https://arxiv.org/abs/1404.5997). S. L. Smith, Q. V. Le 2018, *A Bayesian Perspective on Generalization and
# Stochastic Gradient Descent*, [arXiv 1710.06451](https://arxiv.org/abs/1710.06451). S. L. Smith et al. 2018, *Don't Decay the Learning Rate, Increase the Batch Size*,
# [arXiv 1711.00489](https://arxiv.org/abs/1711.00489). S. McCandlish et al. 2018, *An Empirical Model of Large-Batch Training*, [arXiv 1812.06162](https://arxiv.org/abs/1812.06162). Y. You et al. 2017,
# *Large Batch Training of Convolutional Networks*, [arXiv 1708.03888](https://arxiv.org/abs/1708.03888); 2020, *Large Batch Optimization for Deep Learning*, [arXiv
# 1904.00962](https://arxiv.org/abs/1904.00962). N. S. Keskar et al. 2017, *On Large-Batch Training for Deep Learning*, [arXiv
# 1609.04836](https://arxiv.org/abs/1609.04836). E. Hoffer et al. 2017, *Train longer, generalize better*, [arXiv 1705.08741](https://arxiv.org/abs/1705.08741). S. Malladi et al. 2022, *On the SDEs and Scaling
# Rules for Adaptive Gradient Algorithms*, [arXiv 2205.10287](https://arxiv.org/abs/2205.10287). T. Akiba, S. Suzuki, K. Fukuda 2017, *Extremely Large Minibatch
# SGD*, [arXiv 1711.04325](https://arxiv.org/abs/1711.04325). C. J. Shallue et al. 2019, *Measuring the Effects of Data Parallelism on Neural Network Training*, [arXiv
# 1811.03600](https://arxiv.org/abs/1811.03600). Z. Nado et al. 2021, *A Large Batch Optimizer Reality Check*, [arXiv 2102.06356](https://arxiv.org/abs/2102.06356). J. Kaplan et al. 2020, *Scaling Laws for
# Neural Language Models*, [arXiv 2001.08361](https://arxiv.org/abs/2001.08361). T. B. Brown et al. 2020, *Language Models are Few-Shot Learners*, [arXiv 2005.14165](https://arxiv.org/abs/2005.14165).
# A. Chowdhery et al. 2022, *PaLM: Scaling Language Modeling with Pathways*, [arXiv 2204.02311](https://arxiv.org/abs/2204.02311). G. Yang et al. 2022, *Tensor Programs V: Tuning Large Neural Networks via Zero-Shot Hyperparameter
# Transfer*, [arXiv 2203.03466](https://arxiv.org/abs/2203.03466). A. Grattafiori et al. 2024, *The Llama 3 Herd of Models*, [arXiv 2407.21783](https://arxiv.org/abs/2407.21783). DeepSeek-AI 2024, *DeepSeek-V3 Technical Report*, [arXiv 2412.19437](https://arxiv.org/abs/2412.19437).
# H. Zhang et al. 2024, *How Does Critical Batch Size Scale in Pre-training?*, [arXiv 2410.21676](https://arxiv.org/abs/2410.21676).
