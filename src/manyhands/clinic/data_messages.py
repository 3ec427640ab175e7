"""The sentences on rows that ranks read alike, and on parts of a data set."""

# as in `clinic_messages.MISTAKES`
MISTAKES_OF_DATA = {
    "shifted rows": (
        "Ranks train on the same rows",
        (
            "{ranks} read the same rows in the same order, one of them {rows} rows ahead: {count} "
            "of {of} rows were the same."
        ),
        (
            "Each rank needs its own part of the data. Add the rank to the seed that the rows are "
            "drawn with, or use DistributedSampler(dataset)."
        ),
        ("01", "06"),
    ),
    "one seed": (
        "Ranks train on the same rows",
        (
            "{ranks} got the same rows in the same order in some of their batches ({count} of {of} "
            "rows). Therefore they draw with the same seed, and one of them has drawn additional "
            "numbers in between."
        ),
        (
            "Each rank needs its own part of the data. Add the rank to the seed that the rows are "
            "drawn with, or use DistributedSampler(dataset)."
        ),
        ("01", "06"),
    ),
    "same places": (
        "Ranks train on the same rows",
        (
            "All ranks read the same rows of one data set of {length} rows in the same order, "
            "beginning with rows {first}. Their batches differ only because each row is changed at "
            "random when it is read."
        ),
        "Give the loader sampler=DistributedSampler(dataset).",
        ("01", "06"),
    ),
    "sampler rank": (
        "The samplers of several ranks draw the same part",
        (
            "{ranks} have samplers with rank={rank}, which drew the same order, beginning with rows"
            " {first}."
        ),
        "Omit num_replicas and rank of DistributedSampler, or give it this process's rank.",
        ("06",),
    ),
    "sampler seed": (
        "The ranks' samplers have different seeds",
        (
            "The seeds, by rank, are {seeds}. Therefore each rank draws a different order, and the "
            "parts overlap. Of the first {of} rows that rank 0 drew, {common} were drawn by rank 1 "
            "as well. In one epoch some rows are used several times and others never."
        ),
        (
            "Give DistributedSampler the same seed on all ranks, because it takes the rank into "
            "account itself."
        ),
        ("06",),
    ),
    "split": (
        "random_split gives different parts on different ranks",
        (
            "All ranks split the same data set into parts of {lengths} rows, but rank {rank} got "
            "different rows from rank 0, since {common} rows of rank 0's first part are in a "
            "different part on rank {rank}. Rows that one rank sets aside for validation are then "
            "used for training by another rank."
        ),
        (
            "Give random_split the same generator on all ranks: "
            "generator=torch.Generator().manual_seed(0)."
        ),
        ("06",),
    ),
    "overlap": (
        "The ranks' parts of the data overlap",
        (
            "{ranks} read the same data set in its first epoch, and {count} of the {of} rows that "
            "one of them read were read by the other as well, in a different step. Therefore the "
            "ranks draw different orders, and some rows are used several times in an epoch and "
            "others never."
        ),
        (
            "Let all ranks draw the same order, with a seed that does not depend on the rank, and "
            "take order[rank::world_size]."
        ),
        ("06",),
    ),
}
