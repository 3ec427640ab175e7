"""The words of unit 09's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "versions": {
        "versions": (1, "for each push the version of the weights that its gradient was computed from, in three logs"),
        "staleness": (1, "and how many updates came in between"),
    },
    "replay": {
        "fresh": (1, "with the newest weights in each update, the replay is gradient descent"),
        "stale": (2, "with weights up to six updates old, all versions of the weights are right, to the last bit"),
    },
    "rate": {
        "delay": (2, "the largest stable rate for one curvature, at delays from 0 to 39, to a thousandth"),
        "curvatures": (1, "and for several directions at once, each with its own curvature and delay"),
    },
    "barrier": {
        "lockstep": (1, "bound 0: all workers begin each step together"),
        "bound": (2, "bounds 1, a few and infinity: each worker begins as soon as it may, and not before"),
        "leave": (2, "nobody waits for a worker that has left, and nobody who has left is told to begin"),
    },
    "backups": {
        "step": (2, "the expected seconds until n of n + b workers are done, to 1 %"),
        "fixed": (2, "of a fixed number of machines: backups with which the target is reached within 1 % of the shortest time"),
        "rented": (1, "of rented machines: backups with which a step costs at most 1 % more than the cheapest"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "KeyError": "A worker is not where it is looked up. One that has left may have been waiting, or not; and `leave` is called once for each worker.",
        "min() arg is an empty sequence": "When the last worker leaves, no clock is left: use min(..., default=0), and return an empty list.",
        "min() iterable argument is empty": "When the last worker leaves, no clock is left: use min(..., default=0), and return an empty list.",
        "package's own answer": "The package's barrier is closed here: write your own.",
        "takes 1 positional argument": "The barrier is made with two arguments, Barrier(workers, bound), and is asked done(worker) and leave(worker).",
    },
    # from the log
    "how many pushes": "One number for each push: an update is a push, and a pull changes nothing.",
    "at the push": "These are the versions at the moment of the *push*. The gradient was computed from the weights of its worker's last pull.",
    "own pushes": "These count the worker's own pushes: that is its clock. A version counts the updates of all workers.",
    "anyone's pull": "Here it is the last pull of *any* worker. Keep one version for each worker.",
    "events": "These are places in the log, pulls included. A version counts the pushes before.",
    "first pull": "Some worker pulls twice before it pushes: its *last* pull counts.",
    "own last push": "You take the version after the worker's own last push. It may have pulled much later than that: look at its pull.",
    "one too many": "One too many: the first weights are version 0, and a pull before any push gets those.",
    "other versions": "Go through the log once: at a pull, note the version for its worker; at a push, tell what was noted, then the version grows by one.",
    "counts itself": "One too many: the update itself does not count, only those between its pull and its push.",
    "negative": "The sign is turned round: staleness is the version at the push minus the version at the pull.",
    "versions again": "These are the versions. The staleness of update t is t minus its version.",
    "own pushes only": "All 0: between a worker's pull and its push, *others* push.",
    "other staleness": "Update t is applied to version t. Its staleness is t minus the version that its gradient was computed from.",
    # the replay
    "newest weights": "Each gradient is computed from the newest weights. Update t has it from version versions[t]: keep all versions.",
    "onto the old ones": "The update starts from the old weights, and all updates since then are lost. The gradient is old; the weights that it is taken off are the newest.",
    "wrong batch": "gradient(w, t) takes the number of the update as its batch, not the number of the version.",
    "uphill": "The sign is wrong: w - rate * gradient.",
    "no rate": "The rate is missing.",
    "one array": "All versions are the same array: it is changed in place, and the list holds it many times over. Make a new one for each version: w - ..., not w -= ...",
    "start changed": "The first of them is not the w that was given: was it changed in place, as -= does? Make a new array for each version: w - ...",
    "start is missing": "Version 0, the weights at the start, is missing in the list.",
    "end is missing": "The last version is missing: T updates make T + 1 versions.",
    "other weights": "versions[0] is always 0. For t = 0, 1, ...: w[t + 1] = w[t] - rate * gradient(w[versions[t]], t).",
    # the rate
    "no rate given": "Return a positive number.",
    "steepest only": "This is right for the largest curvature, {steepest}, with its delay. A direction with a smaller curvature and a longer delay, {largest} and {delay}, grows first.",
    "latest only": "This is right for the longest delay. A direction with a shorter delay and a larger curvature, {delay} and {largest}, grows first.",
    "steepest and latest": "This takes the largest curvature and the longest delay together, but no direction has both. Here a larger rate is still stable.",
    "mean delay": "The mean of the delays does not decide. Each direction has its own bound.",
    "largest": "This is the bound of the direction that allows the most. All directions must be stable.",
    "mean curvature": "The mean of the curvatures does not decide: the direction that grows first does. Here it has the curvature {largest}.",
    "all curvatures": "The curvatures do not add up, because each direction runs for itself. The one that grows first has the curvature {largest}.",
    "multiplied": "The bound is for rate * curvature: divide it by the curvature.",
    "no delay": "This is the rate without delay, 2 / curvature. At delay {delay} the weights would grow.",
    "one over h": "1 / curvature is the largest rate at delay 1 only. Here the delay is {delay}.",
    "small angle": "Nearly: the sine is replaced by its angle. At delay {delay} that is too large: 2 sin(pi / (2 (2 d + 1))).",
    "not halved": "The angle is twice too large: at the edge, half of pi / (2 d + 1) goes into the sine.",
    "shared out": "2 / (d + 1) would be right if d + 1 gradients of the *same* weights came together. With a delay of {delay} in each update, less is possible.",
    "fastest": "This is the rate that converges fastest. Asked for is the largest that does not grow: there the weights swing.",
    "delay counted twice": "This is the bound for delay {delay} + 1. A delay of 0 means the newest weights: w[t + 1] = w[t] - rate * h * w[t - d].",
    "delay too short": "This is the bound for delay {delay} - 1. A delay of 0 means the newest weights: w[t + 1] = w[t] - rate * h * w[t - d].",
    "half": "One half of it: the bound is 2 sin(...), as without delay it is 2 / curvature.",
    "too large": "Too large: at delay {delay} the weights grow with this rate (curvature {largest}).",
    "too small": "Too small: at delay {delay} a larger rate still does not grow (curvature {largest}).",
    # the barrier
    "no list": "{call} must return a list of workers, an empty one if nobody may begin.",
    "named twice": "A worker is in the list twice.",
    "gone": "Worker {worker} has left, and is told to begin. Forget that it was waiting.",
    "told twice": "Worker {worker} is told to begin, but it does not wait: it has been told before, or is still computing. Clocks {clocks}.",
    "one too far": "Bound {bound}, clocks {clocks}: worker {worker} is {gap} ahead of the slowest, one too many. It may begin if it is *at most* {bound} ahead.",
    "too early": "Bound {bound}, clocks {clocks}: worker {worker} is {gap} ahead of the slowest, and may not begin. The slowest is the one with the smallest clock, also if it is computing.",
    "strict": "Bound {bound}, clocks {clocks}: worker {worker} is {gap} ahead of the slowest, which is allowed: at most, not less than. With bound 0 nobody would ever begin.",
    "no bound": "Bound {bound} is no barrier at all: worker {worker} may begin, however far ahead it is. Clocks {clocks}.",
    "held back": "Bound {bound}, clocks {clocks}: worker {worker} is only {gap} ahead of the slowest, and may begin. Whom do you compare it with?",
    "lost wake-up": "Bound {bound}, clocks {clocks}: worker {worker} has been waiting, and may begin now. Who is told? When the slowest moves on, look at *all* who wait: nobody "
                    "else will wake them.",
    "left: nobody told": "Bound {bound}, clocks {clocks}: {call} has taken away the one that worker {worker} was waiting for. Its clock must not count any more, and who may "
                         "begin now must be told.",
    "left: still counts": "Bound {bound}, clocks {clocks}: worker {worker} is {gap} ahead of the slowest, and may begin. {left} worker(s) have left before: their clocks must not count "
                          "any more. And all who wait must be looked at.",
    "order": "The right workers, but not in ascending order.",
    # backups
    "no seconds": "Return a number of seconds.",
    "no backups": "This is the slowest of {n}, without backups: {all} workers compute, and the first {n} to finish make the step.",
    "waits for all": "This waits for all {all} workers. The step is made as soon as {n} of them are done.",
    "mean time": "The mean of the times is the wait for one worker. A step waits for the {n}-th fastest of {all}.",
    "median time": "The median of the times says nothing of the slow ones. A step waits for the {n}-th fastest of {all}.",
    "slowest time": "This is the slowest time that was ever measured. How likely is it that the {n}-th fastest of {all} is so slow?",
    "the first": "This is the fastest of {all}. The step needs {n} gradients.",
    "n minus b": "Here b of the n are given up. The step needs n = {n} gradients, and {all} workers compute.",
    "b-th": "This is the {b}-th fastest of {all}. The step waits for the n-th: {n}.",
    "in the sample": "This is the {n}-th fastest of the *measured* times. {all} workers draw from them: how fast is the {n}-th fastest draw, on average?",
    "one too early": "One too early: this is the wait for n - 1 of {all}. Counted from 0, the n-th has the index n - 1.",
    "one too late": "One too late: this is the wait for n + 1 of {all}. Counted from 0, the n-th has the index n - 1.",
    "quantile": "The quantile n / (n + b) is right for very many workers only. With {all} of them, the {n}-th fastest scatters, and its mean lies elsewhere.",
    "n times": "The workers compute at the same time: their times do not add up.",
    "few draws": "Near, but not to 1 %. If you draw: each worker for itself, so that two may take the same time (with replacement). And the mean of K draws is off by about their spread / sqrt(K). 200,000 draws are enough, 10,000 are not.",
    "other wait": "Not the expected time of the {n}-th fastest of {all} draws. Draw {all} times, sort, take the {n}-th; and the mean over very many repetitions.",
    "no choice": "Return a whole number of backups, with at least one gradient left for a step.",
    "needless backups": "{more} % more than the best, which is no backup at all: here nobody is ever late. b = 0 is a choice too.",
    "first minimum": "{more} % more than the best. With one backup more it gets dearer, and with many more it is far cheaper: do not stop at the first minimum, try every b.",
    "none": "No backup at all: {more} % slower than the best. One machine of {size} that is late holds up all the others.",
    "fewest seconds": "These steps are the shortest, but each averages few gradients, and many more steps are needed: {more} % slower than the best. Multiply by steps(n).",
    "throughput": "This has the most gradients a second. But a gradient more in a step saves fewer and fewer steps: {more} % slower than the best. Multiply by steps(n).",
    "none rented": "No backup at all: {more} % more than the cheapest. {size} machines are paid for while they wait for one.",
    "machines forgotten": "The shortest step, and {more} % more than the cheapest: every machine is paid for, n + b of them, for as long as the step takes.",
    "other choice": "{more} % more than the best. With a step_s that is right, try every b, and take the best one; if you draw, 200,000 times.",
}

HINTS = {
    "09-versions": ("A push changes the version, a pull does not. What must be remembered at a pull, and for whom?",
                    "Two variables: the version, a number, and for each worker the version that it pulled last, in a dict. At a push: append the pulled version and version minus "
                    "pulled, then version += 1."),
    "09-replay": ("All versions must be kept, each as an array of its own. From which one does the update start, and from which one is the gradient?",
                  "history = [w]; for t, version in enumerate(versions): history.append(history[-1] - rate * gradient(history[version], t)). The subtraction makes a new array."),
    "09-rate": ("Each direction by itself has the tutorial's bound. Compute what each of them allows, and compare. One that is less steep may be the one that decides.",
                "For one direction the edge is where the largest root of z^(d+1) - z^d + rate * h (at delay 0: z - 1 + rate * h) reaches the unit circle. If you search, halve the interval of the rate, and call a rate stable "
                "only if the roots of every direction are inside."),
    "09-barrier": ("Keep a clock for each worker that is still there, and who waits. One more step of the slowest, or its end, may set free several that wait, not only the one who asks.",
                   "A dict of clocks and a set of those that wait. Both methods end alike: slowest = min(clocks.values(), default=0); free = the waiting ones with clock - slowest <= bound; "
                   "take them out of the waiting set; return them sorted. `leave` first removes the worker from the dict and from the set."),
    "09-backups": ("Draw n + b times and sort them: which one ends the step? Its mean over many repetitions is the answer, or a binomial sum without drawing. Then try every b.",
                   "By drawing: np.sort(rng.choice(times_s, (200_000, n + b)), axis=1)[:, n - 1].mean(). Exactly: the n-th fastest is at most the k-th of K sorted times with the probability that "
                   "at least n of n + b draws are, and each is with probability k / K. Then best_b is the b from 0 to machines - 1 with the smallest steps(machines - b) * step_s(machines - b, b, "
                   "times_s), and cheapest_b the one with the smallest (n + b) * step_s(n, b, times_s)."),
}
