# %% [markdown] unit={"minutes": 45, "ranks": 1, "framework": "torch", "title": "Large batches"}
# # 17 Lab: 32 times the batch, the same epochs
#
# You repair some of the code that large batches need, and write the rest. Then you train with batches of 256 and come close to what batches of 8 reach in the
# same number of epochs. At the end, you can
#
# * find out from the rates of a few steps what is wrong with a schedule.
# * find out what is wrong with an optimiser (LARS) from the steps that it takes.
# * measure the noise of a gradient from the ranks of a data-parallel run.
# * let the batch grow where the rate would fall, so that fewer steps are needed for the same noise.
# * state with what confidence one training run is as good as another.
#
# **Before:** the tutorial of this unit. **Minutes:** 45 · **Ranks:** none, because what counts is the batch and not which rank computes its gradient (unit 01)
# · **Points:** 18.
#
# Every cell runs in this kernel. Each exercise is independent of the others, except that the last one may use your earlier functions. Below each check, you see
# what it prints when the answer is right. Every hint has two steps, so run `hint(...)` again for the second one.

# %% tags=["setup"]
import torch

from manyhands import hint
from manyhands.checks import large_batches as check
from manyhands.checks.large_batches.task import Task

torch.set_num_threads(1)

# %% [markdown]
# ## 1. Find the bug: the rate of a step
#
# The function below returns the learning rate of each step. The argument `epoch` states how much of the data the training run has used when the step begins.
# For example, 2.5 is the middle of the third epoch. However, the function is wrong. With this function, a run that follows the square-root rule gets almost the
# rate of the linear rule, the rate jumps during the warm-up, and each drop takes effect one step too late.

# %%
def faulty_rate(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    """Return the rate of the step that begins at `epoch`."""
    full = (base_rate * k) ** (1 if rule == "linear" else 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * int(epoch) / warm_up
    return full / drop_by ** sum(epoch > drop for drop in drops)

# %% [markdown]
# The evidence shows the rate at some steps with batches 32 times as large. Before you write any code, work out on paper what each number should be.

# %%
def evidence_of_rate(rate_of):
    epochs = 0, 0.5, 1, 1.5, 2, 3.5, 4, 5, 6, 7
    print(f"{'epoch':<12}", *(f"{epoch:>6}" for epoch in epochs))
    for rule in ("linear", "square root"):
        rates = [rate_of(epoch, 0.04, 32, rule, 2, [4, 6], 4) for epoch in epochs]
        print(f"{rule:<12}", *(f"{rate:>6.3f}" for rate in rates))

evidence_of_rate(faulty_rate)

# %% [markdown]
# Write the correct function, and then run `evidence_of_rate(rate_at)`.
#
# * **Scaling.** Batches are `k` times as large. The full rate is `base_rate * k` by the linear rule, and `base_rate` times the square root of `k` by the rule
#   `"square root"`.
# * **Warm-up.** In the first `warm_up` epochs (`warm_up` may be a fraction or 0), the rate grows along a straight line, from `base_rate` at epoch 0 to the full
#   rate at epoch `warm_up`.
# * **Drops.** At each epoch in `drops`, the rate is divided by `drop_by` and then stays at the lower value. All drops come after the warm-up.
#
# *Difficulty ●○○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# Begin with epoch 2, where the warm-up is over and the rate has not been dropped yet. Is the rate right for both rules? For more help, run
# `hint("17-schedule")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="schedule"
def rate_at(epoch: float, base_rate: float, k: int, rule: str, warm_up: float,
            drops: list[float], drop_by: float) -> float:
    """Return the rate of the step that begins at `epoch`, for batches k times as large.

    The `rule` is "linear" or "square root".
    """
    ### BEGIN SOLUTION
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(epoch >= drop for drop in drops)
    ### END SOLUTION

# %% tags=["check"] grade_id="schedule-check" points=3
check.schedule(rate_at)

# %% [markdown]
# ## 2. Find the bug: a step of LARS
#
# In LARS, each layer has a separate learning rate, so that the length of a layer's step is `trust` times the length of its weights (times the rate). For a
# layer with weights $w$, gradient $g$ and memory $v$, a step is
#
# $$ r = \text{trust} \cdot \frac{|w|}{|g| + \text{decay} \cdot |w|}, \qquad v \leftarrow m\,v + \text{rate} \cdot r \cdot (g + \text{decay} \cdot w), \qquad w
# \leftarrow w - v $$
#
# Where $|w|$ or $|g|$ is zero, $r$ is 1, because biases often begin at zero and would otherwise stay there. Several runs are stored side by side, so each
# tensor has the shape `[runs, ...]`, and the norms are taken for each run separately.
#
# The step below trains a network, and the test error looks plausible. However, a run ends with different weights when it shares its tensors with other runs,
# and the step after a drop of the rate is too short.

# %% tags=["setup"]
def norm(tensor):
    """Return the norm of each run's part of a tensor [runs, ...], as [runs, 1, ...]."""
    return tensor.square().sum(tuple(range(1, tensor.dim())), keepdim=True).sqrt()

# %%
def faulty_lars(weights, gradients, memory, rate, momentum, decay, trust):
    """Take one step of LARS, which changes `weights` and `memory` in place."""
    for weight, gradient, moving in zip(weights, gradients, memory):
        gradient = gradient + decay * weight
        ratio = trust * weight.norm() / gradient.norm()
        moving.mul_(momentum).add_(ratio * gradient)
        weight.sub_(rate * moving)

# %% [markdown]
# The evidence uses a single small layer. What should each line show if the step is right?

# %%
def evidence_of_lars(step):
    def moved(weight, gradients, rates, decay=0.0):
        weight, memory = weight.clone(), torch.zeros_like(weight)
        for gradient, rate in zip(gradients, rates):
            before = weight.clone()
            step([weight], [gradient.clone()], [memory], rate, 0.9, decay, 0.1)
        return before - weight  # the change in the last step

    torch.manual_seed(0)
    scale = torch.tensor([1.0, 5.0]).view(2, 1, 1)
    w, g = scale * torch.randn(2, 3, 4), torch.randn(2, 3, 4) / scale
    print(f"run 0 with another run, against run 0 alone: "
          f"{moved(w, [g], [1])[0].norm() / moved(w[:1], [g[:1]], [1]).norm():.3f}")
    first, second = moved(w, [g], [1]), moved(w, [g, g], [1, 0])
    print(f"second step, with a rate of 0, against the first: "
          f"{second.norm() / first.norm():.3f}")
    print(f"a layer of zeros moves by {moved(0 * w, [g], [1]).norm():.3f}, "
          f"and its gradient is {g.norm():.3f} long")
    print(f"with decay 1 and a gradient at a right angle, the step is "
          f"{moved(torch.eye(2)[None], [torch.eye(2).flip(0)[None]], [1], 1.0).norm():.4f} "
          f"long")

evidence_of_lars(faulty_lars)

# %% [markdown]
# In the last line, $|w| = |g| = \sqrt 2$ and $|g + w| = 2$, so you can compute the length of the correct step. Write the correct step, and then run
# `evidence_of_lars(lars_step)`. The function `norm` returns the norms in a shape in which they can be multiplied by the tensors.
#
# *Difficulty ●●○, 10 minutes, 4 points*
#
# <details><summary>Hint</summary>
#
# Each line of the evidence belongs to one part of the three formulas. `torch.where(condition, a, b)` chooses for each element separately, and the value that it
# does not choose may be infinite. For more help, run `hint("17-lars")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="lars"
def lars_step(weights: list[torch.Tensor], gradients: list[torch.Tensor],
              memory: list[torch.Tensor],
              rate: float, momentum: float, decay: float, trust: float) -> None:
    """Take one step of LARS, which changes `weights` and `memory` in place.

    Each list has one tensor [runs, ...] for each layer.
    """
    ### BEGIN SOLUTION
    for weight, gradient, moving in zip(weights, gradients, memory):
        w, g = norm(weight), norm(gradient)
        ratio = torch.where((w > 0) & (g > 0), trust * w / (g + decay * w),
                            torch.ones_like(w))
        moving.mul_(momentum).add_(rate * ratio * (gradient + decay * weight))
        weight.sub_(moving)
    ### END SOLUTION

# %% tags=["check"] grade_id="lars-check" points=4
check.lars(lars_step)

# %% [markdown]
# ## 3. The noise of a gradient
#
# The gradient of one image has the covariance $\Sigma$ around the true gradient $G$. The gradient of a batch of $B$ images has a $B$-th of this covariance, so
#
# $$ E\,|G_B|^2 = |G|^2 + \frac{1}{B}\,\mathrm{tr}\,\Sigma $$
#
# Data parallelism gives you two batch sizes for free. The gradient of a rank before the all-reduce is the gradient of a small batch, and the mean over the
# ranks is the gradient of a large one. You are given the gradients of all ranks in some steps as `[steps, ranks, numbers]`, where each gradient is the mean
# over `rows` images. Since two sizes give two equations, you can estimate $|G|^2$ and $\mathrm{tr}\,\Sigma$ and compute from them the **noise scale**
# $\mathrm{tr}\,\Sigma / |G|^2$ (McCandlish et al. 2018).
#
# The estimates of $|G|^2$ and $\mathrm{tr}\,\Sigma$ are unbiased. Their quotient is biased, but only slightly if you average over all steps before you divide.
# Therefore, use all steps and all ranks.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# The quantity that you must average is on the left of the equation, namely $|G_B|^2$. Over which dimensions is it averaged for the small batches, and over
# which for the large ones? For more help, run `hint("17-noise")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="noise"
def noise_scale(gradients: torch.Tensor, rows: int) -> tuple[float, float, float]:
    """Return (|G|^2, trace of the covariance, noise scale).

    `gradients` has the gradients of all ranks in some steps, [steps, ranks, numbers], and
    each of them is the mean over `rows` images.
    """
    ### BEGIN SOLUTION
    large_rows = rows * gradients.shape[1]
    of_small = gradients.square().sum(2).mean().item()
    of_large = gradients.mean(1).square().sum(1).mean().item()
    squared = (large_rows * of_large - rows * of_small) / (large_rows - rows)
    trace = (of_small - of_large) / (1 / rows - 1 / large_rows)
    return squared, trace, trace / squared
    ### END SOLUTION

# %% tags=["check"] grade_id="noise-check" points=3
check.noise(noise_scale)

# %% [markdown]
# ## 4. Grow the batch instead
#
# Smith and Le 2018 write the noise of training as follows, with the rate $\epsilon$, the momentum $m$, $N$ images and batches of size $B$:
#
# $$ g = \frac{\epsilon}{1 - m} \left( \frac{N}{B} - 1 \right) $$
#
# To make the noise smaller, you can let the rate fall or let the batch grow. First, write $g$ as a function. Then rewrite a schedule whose `phases` are pairs
# (epochs, rate) with falling rates and the same `batch` in all phases. Return triples (epochs, rate, batch) that meet these conditions:
#
# * In each phase, rate / batch is the same as in the given schedule (which keeps $g$ approximately the same for $B \ll N$).
# * No rate is above the rate of the first phase, and no batch is larger than `largest`. Where growing the batch up to `largest` is not enough, the rate falls
#   by the rest of the factor.
# * Under these conditions, there are as few steps as possible.
# * A batch is a whole number of images. Take care with rounding, because 0.3 / 0.1 is 2.9999999999999996 in floats.
#
# *Difficulty ●●○, 8 minutes, 3 points*
#
# <details><summary>Hint</summary>
#
# First compute the batch that keeps the rate of the first phase, then limit it, and finally compute the rate that belongs to it. For more help, run
# `hint("17-growing")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="growing"
def sgd_noise(rate: float, momentum: float, images: int, batch: int) -> float:
    """Return the noise g of Smith and Le 2018."""
    ### BEGIN SOLUTION
    return rate / (1 - momentum) * (images / batch - 1)
    ### END SOLUTION


def grow(phases: list[tuple[float, float]], batch: int,
         largest: int) -> list[tuple[float, float, int]]:
    """Return (epochs, rate, batch) for each phase (epochs, rate).

    Each phase keeps its rate / batch, no rate is above the first one, no batch is above
    `largest`, and the steps are then as few as possible.
    """
    ### BEGIN SOLUTION
    grown = []
    for epochs, rate in phases:
        # rounded down, but 31.999999999 counts as 32
        larger = min(largest, int(batch * phases[0][1] / rate + 1e-9))
        grown.append((epochs, rate * larger / batch, larger))
    return grown
    ### END SOLUTION

# %% tags=["check"] grade_id="growing-check" points=3
check.growing(sgd_noise, grow)

# %% [markdown]
# ## 5. The challenge: 32 times the batch
#
# `task` holds distorted digits, a fifth of whose training labels are drawn anew, and eight runs of the network side by side. The reference was trained with
# batches of 8 for 8 epochs, with the rate 0.04 and momentum 0.9, and the rate was divided by 4 at epochs 4 and 6. Now it is your turn, with batches of **256**
# and the **same 8 epochs**, which are `task.steps` steps and no more.
#
# * `task.start()` returns the weights of all runs, as a list of tensors `[runs, ...]`.
# * `task.gradient(weights)` takes the next batch of each run and returns the gradients, in the shapes of the weights. When the epochs are used up, it raises an
#   error.
# * `task.batch` is the batch size, and `task.images` is the number of training images.
#
# At the end, return the weights of all runs.
#
# **The target.** Each of the eight runs has a small-batch twin with the same start and the same images. The difference of their test errors, in percentage
# points, is $d$. Then $\bar d + 1.895\,s_d / \sqrt 8$ must be at most **3.5**. This means that with 95 % confidence (Student's t, one-sided, 7 degrees of
# freedom), your batches cost on average less than 3.5 points. You choose the rule, the warm-up and the optimiser, and the tutorial's tables help you with the
# choice. The grader sets the same target for different distortions and different starts.
#
# The check counts every image of every batch, whichever task it was taken from, but how you use the gradients is up to you.
#
# *Difficulty ●●●, 11 minutes, 5 points*
#
# <details><summary>Hint</summary>
#
# Which of the tutorial's series come close to the small batch with batches of 256, and with which functions of this lab can you repeat these series? For more
# help, run `hint("17-challenge")` in a separate cell.
# </details>

# %% tags=["solution"] grade_id="challenge"
def train(task: Task) -> list[torch.Tensor]:
    """Train all runs of `task` with batches of 256 and return the weights at the end."""
    ### BEGIN SOLUTION
    weights = task.start()
    memory = [torch.zeros_like(weight) for weight in weights]
    for step in range(task.steps):
        rate = rate_at(step * task.batch / task.images, base_rate=0.04, k=32, rule="linear",
                       warm_up=1, drops=[4, 6], drop_by=4)
        for weight, gradient, moving in zip(weights, task.gradient(weights), memory):
            moving.mul_(0.9).add_(gradient, alpha=rate)
            weight.sub_(moving)
    return weights
    ### END SOLUTION

# %% tags=["check"] grade_id="challenge-check" points=5
check.challenge(train)

# %% [markdown]
# ## All together
#
# This part, which is not graded, applies your estimator to your own training run. The noise scale at the start and after 3 epochs shows which batch sizes are
# worth their cost.

# %%
from manyhands.checks.large_batches.task import distorted_digits

digits = distorted_digits(seed=1)
task = Task(digits, batch=256, epochs=3, seed=1)
weights = {"start": task.start(), "after 3 epochs": train(task)}


def gradients(weights, rows, ranks, steps):
    """Return the first run's gradients, as from `ranks` ranks: [steps, ranks, numbers]."""
    task = Task(digits, rows, epochs=32)
    found = [torch.cat([g[0].flatten() for g in task.gradient(weights)])
             for _ in range(steps * ranks)]
    return torch.stack(found).view(steps, ranks, -1)


for when in weights:
    squared, trace, scale = noise_scale(gradients(weights[when], 16, 64, 8), 16)
    print(f"{when:<15} |G|^2 {squared:.3f}, trace {trace:4.1f}, noise scale about "
          f"{float(f'{scale:.1g}'):.0f}")

# %% [markdown]
# ## Where to go on
#
# * Try batches of 512 and 1024 in the challenge's task with `Task(distorted_digits(seed=1), batch=1024)`. At which batch size does your schedule fail, and does
#   `lars_step` go further?
# * P. Goyal et al. 2017, [Accurate, Large Minibatch SGD](https://arxiv.org/abs/1706.02677), do the same with batches of 8192 images, and describe the necessary
#   details in section 3.
# * In unit 18, the number of ranks changes during the run, and the batch changes with it. In unit 20, a judge counts the time that training takes.
