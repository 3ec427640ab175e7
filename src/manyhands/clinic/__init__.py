"""A clinic for a team's own training script: is it right, does it hang, what does it cost?

`manyhands clinic train.py --ranks 4` copies the script's repository, runs the script under a
launcher for a few steps with observers in place, and writes one page. The script itself is not
changed.

How it can tell that N processes train like one, for a script that it knows nothing of: on each rank
it sees the gradients before they are averaged (`h_r`, by hooks on the parameters), the gradient
that the optimiser gets (`G_r`), the rows that go into the model, and the weights. One process whose
batch is the rows of all ranks has the gradient

    R = sum over the ranks of n_r / n * h_r        (n_r: the terms of the rank's mean loss, n their sum)

So: all ranks begin with the same weights, and G_r = R on every rank in every step, and each
optimiser makes the same weights of it. Then, step by step, the weights are those of one process.
Whether the model treats each row for itself is tried as well: rank 0 runs a copy of the model, as
it was at the start, on the rows of all ranks at once.

`rank_program` is the program on each rank, `observe`, `loaders`, `losses`, `communication` and
`spans` are its eyes, and `records` has the types of what they record. `one_process_run` is the run
in one process. `visit` runs the script and `hangs` watches it; `evidence` reads what was seen,
`judge` says what it means and `conclude` puts it into the sentences of `clinic_messages`, `costs`
adds up, `page` and `plain_page` show it. Numbers that decide are in `tolerances` and
`clinic_limits`.
"""
