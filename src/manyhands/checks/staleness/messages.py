"""The messages of unit 09's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "versions": {
        "versions": (
            1,
            (
                "each push has the version of the weights that its gradient was computed from, in "
                "three logs"
            ),
        ),
        "staleness": (1, "each push has its staleness, the number of updates since that version"),
    },
    "replay": {
        "fresh": (1, "with the newest weights in each update, the replay is gradient descent"),
        "stale": (
            2,
            (
                "with weights up to six updates old, all versions of the weights are right, to the "
                "last bit"
            ),
        ),
    },
    "rate": {
        "delay": (
            2,
            (
                "the largest stable rate for one curvature is right to a thousandth, at delays from"
                " 0 to 39"
            ),
        ),
        "curvatures": (
            1,
            "the same holds for several directions together, each with its own curvature and delay",
        ),
    },
    "barrier": {
        "lockstep": (1, "with bound 0, all workers begin each step together"),
        "bound": (
            2,
            (
                "with bounds of 1, a few and infinity, each worker begins as soon as it may, and "
                "not before"
            ),
        ),
        "leave": (
            2,
            "no worker waits for one that has left, and none that has left is told to begin",
        ),
    },
    "backups": {
        "step": (2, "the expected seconds until n of n + b workers are done are right to 1 %"),
        "fixed": (
            2,
            (
                "with a fixed number of machines, the chosen backups reach the target within 1 % of"
                " the shortest time"
            ),
        ),
        "rented": (
            1,
            (
                "with rented machines, a step with the chosen backups costs at most 1 % more than "
                "the cheapest"
            ),
        ),
    },
}

NO_CLOCK = (
    "When the last worker leaves, no clock is left. Use min(..., default=0), and return an empty "
    "list."
)

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "KeyError": (
            "A worker is not where it is looked up. A worker that leaves may have been waiting or "
            "computing, and `leave` is called only once for each worker."
        ),
        "min() arg is an empty sequence": NO_CLOCK,
        "min() iterable argument is empty": NO_CLOCK,
        "package's own answer": "The package's barrier is closed in this check, so write your own.",
        "takes 1 positional argument": (
            "The barrier is made with two arguments, as in Barrier(workers, bound), and is "
            "then called with done(worker) and leave(worker)."
        ),
    },
    # from the log
    "how many pushes": (
        "Return one number for each push, because an update is a push, whereas a pull changes "
        "nothing."
    ),
    "at the push": (
        "These are the versions at the moment of the *push*, but the gradient was computed from the"
        " weights of its worker's last pull."
    ),
    "own pushes": (
        "These count the worker's own pushes, which is the worker's clock. A version counts the "
        "updates of all workers."
    ),
    "anyone's pull": (
        "These are the versions at the last pull of *any* worker. Keep one version for each worker."
    ),
    "events": (
        "These are positions in the log, which include the pulls. A version counts only the pushes "
        "before."
    ),
    "first pull": "Some worker pulls twice before it pushes, in which case its *last* pull counts.",
    "own last push": (
        "You use the version after the worker's own last push, but the worker may have pulled much "
        "later. Use the version at its pull."
    ),
    "one too many": (
        "Each version is one too large. The first weights are version 0, so a pull before any push "
        "gets version 0."
    ),
    "other versions": (
        "Go through the log once. At a pull, note the version for its worker. At a push, append "
        "what was noted for its worker, and then increase the version by one."
    ),
    "counts itself": (
        "Each number is one too large, because the update itself does not count, only the updates "
        "between its pull and its push."
    ),
    "negative": (
        "The sign is wrong, because staleness is the version at the push minus the version at the "
        "pull."
    ),
    "versions again": "These are the versions. The staleness of update t is t minus its version.",
    "own pushes only": (
        "Every staleness is 0, although *other* workers push between a worker's pull and its push."
    ),
    "other staleness": (
        "Update t is applied to version t, so its staleness is t minus the version that its "
        "gradient was computed from."
    ),
    # the replay
    "newest weights": (
        "Each gradient is computed from the newest weights, but update t must compute it from "
        "version versions[t], so keep all versions."
    ),
    "onto the old ones": (
        "The update starts from the old weights, so all updates since then are lost. Although the "
        "gradient is old, subtract it from the newest weights."
    ),
    "wrong batch": (
        "The batch of gradient(w, t) is the number of the update, and not the number of the "
        "version."
    ),
    "uphill": "The sign is wrong, because the update is w - rate * gradient.",
    "no rate": "The rate is missing from the update.",
    "one array": (
        "All versions are equal, as if the list held the same array many times, changed in place. "
        "Make a new array for each version, with w - ... instead of w -= ..."
    ),
    "start changed": (
        "The first version is not the w that was given. Was it changed in place, as -= does? Make a"
        " new array for each version, with w - ..."
    ),
    "start is missing": "Version 0, the weights at the start, is missing from the list.",
    "end is missing": "The last version is missing, because T updates make T + 1 versions.",
    "other weights": (
        "versions[0] is always 0. For t = 0, 1, ..., compute w[t + 1] = w[t] - rate * "
        "gradient(w[versions[t]], t)."
    ),
    # the rate
    "no rate given": "Return a positive number.",
    "steepest only": (
        "This is right for the largest curvature, {steepest}, with its delay. However, a direction "
        "with a smaller curvature and a longer delay ({largest} and {delay}) grows first."
    ),
    "latest only": (
        "This is right for the longest delay. However, a direction with a shorter delay and a "
        "larger curvature ({delay} and {largest}) grows first."
    ),
    "steepest and latest": (
        "This combines the largest curvature with the longest delay, but no direction has both, so "
        "a larger rate is still stable here."
    ),
    "mean delay": (
        "The mean of the delays does not decide, because each direction has its own bound."
    ),
    "largest": (
        "This is the bound of the direction that allows the largest rate, but all directions must "
        "be stable."
    ),
    "mean curvature": (
        "The mean of the curvatures does not decide. The direction that grows first does, and it "
        "has the curvature {largest} here."
    ),
    "all curvatures": (
        "The curvatures do not add up, because each direction evolves by itself. The one that grows"
        " first has the curvature {largest}."
    ),
    "multiplied": "The bound is for rate * curvature, so divide it by the curvature.",
    "no delay": (
        "This is the rate without delay, 2 / curvature, with which the weights would grow at delay "
        "{delay}."
    ),
    "one over h": (
        "1 / curvature is the largest rate only at delay 1, but here the delay is {delay}."
    ),
    "small angle": (
        "This is close, but the sine is replaced by its angle, which is too large at delay {delay}."
        " Use 2 sin(pi / (2 (2 d + 1)))."
    ),
    "not halved": (
        "The angle is too large by a factor of two, because at the edge half of pi / (2 d + 1) goes"
        " into the sine."
    ),
    "shared out": (
        "2 / (d + 1) would be right if d + 1 gradients of the *same* weights arrived together. With"
        " a delay of {delay} in each update, however, less is possible."
    ),
    "fastest": (
        "This is the rate that converges fastest. The largest rate at which the weights do not grow"
        " is larger, although they swing there."
    ),
    "delay counted twice": (
        "This is the bound for delay {delay} + 1. Since a delay of 0 means the newest weights, the "
        "update is w[t + 1] = w[t] - rate * h * w[t - d]."
    ),
    "delay too short": (
        "This is the bound for delay {delay} - 1. Since a delay of 0 means the newest weights, the "
        "update is w[t + 1] = w[t] - rate * h * w[t - d]."
    ),
    "half": (
        "This is half of the bound, which is 2 sin(...), just as it is 2 / curvature without delay."
    ),
    "too large": (
        "This rate is too large, because the weights grow with it at delay {delay} (curvature "
        "{largest})."
    ),
    "too small": (
        "This rate is too small, because the weights do not grow with a larger one at delay {delay}"
        " (curvature {largest})."
    ),
    # the barrier
    "no list": "{call} must return a list of workers, which is empty if none of them may begin.",
    "named twice": "A worker is in the list twice.",
    "gone": (
        "Worker {worker} is told to begin, although it has left (or never existed). When a worker "
        "leaves, forget that it was waiting."
    ),
    "told twice": (
        "Worker {worker} is told to begin, but it is not waiting, because it was told before or is "
        "still computing. The clocks are {clocks}."
    ),
    "one too far": (
        "With bound {bound} and clocks ({clocks}), worker {worker} is {gap} ahead of the slowest, "
        "which is one too many. It may begin if it is *at most* {bound} ahead."
    ),
    "too early": (
        "With bound {bound} and clocks ({clocks}), worker {worker} is {gap} ahead of the slowest, "
        "so it may not begin. The slowest worker is the one with the smallest clock, even if it is "
        "computing."
    ),
    "strict": (
        "With bound {bound} and clocks ({clocks}), worker {worker} is {gap} ahead of the slowest, "
        "which is allowed because the rule is at most, not less than. Otherwise, no worker would "
        "ever begin with bound 0."
    ),
    "no bound": (
        "Bound {bound} is no barrier at all, so worker {worker} may begin, however far ahead it is."
        " The clocks are {clocks}."
    ),
    "held back": (
        "With bound {bound} and clocks ({clocks}), worker {worker} is only {gap} ahead of the "
        "slowest, so it may begin. With which worker do you compare it?"
    ),
    "lost wake-up": (
        "With bound {bound} and clocks ({clocks}), worker {worker} has been waiting and may begin "
        "now. When the slowest worker moves on, look at *all* waiting workers, because no other "
        "call will wake them."
    ),
    "left: nobody told": (
        "With bound {bound} and clocks ({clocks}), {call} has removed the worker that worker "
        "{worker} was waiting for. Its clock must no longer count, and all workers that may begin "
        "now must be in the list."
    ),
    "left: still counts": (
        "With bound {bound} and clocks ({clocks}), worker {worker} is {gap} ahead of the slowest, "
        "so it may begin. The clocks of workers that have left ({left} so far) must no longer "
        "count, and all waiting workers must be looked at."
    ),
    "order": "These are the right workers, but they are not in ascending order.",
    # backups
    "no seconds": "Return a number of seconds.",
    "no backups": (
        "This is the slowest of {n}, without backups, but {all} workers compute, and the first {n} "
        "to finish make the step."
    ),
    "waits for all": (
        "This waits for all {all} workers, but the step is made as soon as {n} of them are done."
    ),
    "mean time": (
        "The mean of the times is the wait for one worker, but a step waits for the {n}-th fastest "
        "of {all}."
    ),
    "median time": (
        "The median of the times does not depend on how slow the slow ones are. A step waits for "
        "the {n}-th fastest of {all}."
    ),
    "slowest time": (
        "This is the slowest time that was ever measured. How likely is it that the {n}-th fastest "
        "of {all} is so slow?"
    ),
    "the first": "This is the fastest of {all}, but the step needs {n} gradients.",
    "n minus b": (
        "Here b of the n gradients are given up, but the step needs n = {n} gradients, because "
        "{all} workers compute."
    ),
    "b-th": (
        "This is the {b}-th fastest of {all}, but the step waits for the n-th, which is the {n}-th."
    ),
    "in the sample": (
        "This is the {n}-th fastest of the *measured* times. Since {all} workers draw from them, "
        "how fast is the {n}-th fastest draw, on average?"
    ),
    "one too early": (
        "This is the wait for n - 1 of {all}, which is one too few. Counted from 0, the n-th has "
        "the index n - 1."
    ),
    "one too late": (
        "This is the wait for n + 1 of {all}, which is one too many. Counted from 0, the n-th has "
        "the index n - 1."
    ),
    "quantile": (
        "The quantile n / (n + b) is right only for very many workers. With {all} of them, the "
        "{n}-th fastest varies, and its mean is different."
    ),
    "n times": "The times do not add up, because the workers compute simultaneously.",
    "few draws": (
        "This is close, but not to 1 %. If you draw, draw for each worker separately, so that two "
        "may take the same time (with replacement). The mean of K draws is off by about their "
        "spread / sqrt(K), so 200,000 draws are enough, whereas 10,000 are not."
    ),
    "other wait": (
        "This is not the expected time of the {n}-th fastest of {all} draws. Draw {all} times, sort"
        " them, and take the {n}-th. The answer is the mean over very many repetitions."
    ),
    "no choice": "Return a whole number of backups, with at least one gradient left for a step.",
    "needless backups": (
        "This is {more} % more than the best, which is no backup at all, because no worker is ever "
        "late here. b = 0 is a choice too."
    ),
    "first minimum": (
        "This is {more} % more than the best. One more backup is more expensive, but many more are "
        "far cheaper, so try every b instead of stopping at the first minimum."
    ),
    "none": (
        "No backup at all is {more} % slower than the best, because one machine of {size} that is "
        "late holds up all the others."
    ),
    "fewest seconds": (
        "These steps are the shortest, but each averages few gradients, so many more steps are "
        "needed. Multiply by steps(n), since this is {more} % slower than the best."
    ),
    "throughput": (
        "This has the most gradients a second, but each further gradient in a step saves fewer "
        "steps than the one before. Multiply by steps(n), since this is {more} % slower than the "
        "best."
    ),
    "none rented": (
        "No backup at all costs {more} % more than the cheapest, because {size} machines are paid "
        "for while they wait for one."
    ),
    "machines forgotten": (
        "This is the shortest step, but it costs {more} % more than the cheapest, because all n + b"
        " machines are paid for as long as the step takes."
    ),
    "other choice": (
        "This is {more} % more than the best. With a step_s that is right, try every b, and take "
        "the best one. If you draw, draw 200,000 times."
    ),
}

HINTS: Hints = {
    "09-versions": (
        (
            "A push changes the version, whereas a pull does not. What must be remembered at a "
            "pull, and for which worker?"
        ),
        (
            "Use two variables, the version (a number) and a dict with the version that each worker"
            " pulled last. At a push, append the pulled version and version minus pulled, and then "
            "compute version += 1."
        ),
    ),
    "09-replay": (
        (
            "All versions must be kept, each as a separate array. From which version does the "
            "update start, and from which one is the gradient computed?"
        ),
        (
            "Begin with history = [w]. In the loop for t, version in enumerate(versions), call "
            "history.append(history[-1] - rate * gradient(history[version], t)). The subtraction "
            "makes a new array."
        ),
    ),
    "09-rate": (
        (
            "Each direction by itself has the tutorial's bound. Compute what each of them allows, "
            "and compare, because a direction that is less steep may be the one that decides."
        ),
        (
            "For one direction, the edge is where the largest root of z^(d+1) - z^d + rate * h (at "
            "delay 0, of z - 1 + rate * h) reaches the unit circle. If you search, halve the "
            "interval of the rate, and call a rate stable only if the roots of every direction are "
            "inside."
        ),
    ),
    "09-barrier": (
        (
            "Keep a clock for each worker that has not left, and the set of waiting workers. One "
            "more step of the slowest worker, or its end, may set several waiting workers free, "
            "and not only the worker that asks."
        ),
        (
            "Use a dict of clocks and a set of waiting workers. Both methods end in the same way. "
            "They compute slowest = min(clocks.values(), default=0), find the waiting workers with "
            "clock - slowest <= bound, remove them from the set, and return them sorted. `leave` "
            "first removes the worker from the dict and from the set."
        ),
    ),
    "09-backups": (
        (
            "Draw n + b times and sort them. Which of them ends the step? The answer is its mean "
            "over many repetitions, or a binomial sum without drawing. Then try every b."
        ),
        (
            "By drawing, the mean is np.sort(rng.choice(times_s, (200_000, n + b)), axis=1)[:, n - "
            "1].mean(). Exactly, the n-th fastest is at most the k-th of K sorted times if at "
            "least n of n + b draws are, and each draw is with probability k / K. Then best_b is "
            "the b from 0 to machines - 1 with the smallest steps(machines - b) * step_s(machines "
            "- b, b, times_s), and cheapest_b is the b with the smallest (n + b) * step_s(n, b, "
            "times_s)."
        ),
    ),
}
