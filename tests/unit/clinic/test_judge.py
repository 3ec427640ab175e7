"""What the clinic makes of its evidence, on vectors that are written down here: no script runs."""

from types import SimpleNamespace

import pytest
import torch

from manyhands.clinic import judge, layouts, one_process_run, remark_rules
from manyhands.clinic.evidence import Step, fit, relative_distance
from manyhands.clinic.loss_factors import loss_scale, shares
from manyhands.clinic.recorded_values import rows_of

SIZES = [3, 2]


def draw(seed, ranks=4):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(sum(SIZES), generator=generator, dtype=torch.float64) for _ in range(ranks)]


def step(given, local, parts=None, rows=None, clips=None, scales=(1.0,) * 4):
    parts = parts or [1 / len(local)] * len(local)
    raw = sum(part * gradient for part, gradient in zip(parts, local, strict=True))
    right = sum(
        part * gradient / scale
        for part, gradient, scale in zip(parts, local, scales or (1.0,) * 4, strict=True)
    )
    return Step(
        ["a", "b"],
        SIZES,
        given,
        right,
        raw,
        scales and list(scales),
        local,
        sum(local) / len(local),
        parts,
        rows or [[f"{rank}.{i}" for i in range(4)] for rank in range(len(local))],
        clips or [[]] * len(local),
    )


def evidence(*steps, scaled=False, orders=(), calls=("all_reduce",), count=None, not_finite=None):
    ranks = len(steps[0].given)
    seen = [
        {
            "start": {},
            "steps": [],
            "loader": None,
            "wrapper": "",
            "frameworks": [],
            "scaled": scaled,
            "seed": 0,
            "stride": 1,
        }
        for _ in range(ranks)
    ]
    facts = [{"groups": [({"lr": 0.1}, ["a", "b"])], "buffers": {}} for _ in steps]
    cost = {
        rank: {"bounds": [0, 1], "calls": list(calls), "orders": list(orders)}
        for rank in range(ranks)
    }
    return SimpleNamespace(
        ranks=ranks,
        seen=seen,
        first=seen[0],
        cost=cost,
        one_process=None,
        sharded={},
        tolerance=1e-7,
        steps=list(steps),
        count=len(steps) if count is None else count,
        find_not_finite=lambda number: not_finite,
        one_process_gradient=lambda: None,
        find_different_starts=lambda: [],
        weight_distances=lambda number: [0.0] * ranks,
        of=lambda number, what: [facts[number][what]] * ranks,
    )


def keys(*args, **options):
    return [finding.key for finding in judge.find_mistakes(evidence(*args, **options))]


LOCAL = draw(0)
MEAN = sum(LOCAL) / 4


def test_the_mean_on_every_rank_is_right():
    assert keys(step([MEAN] * 4, LOCAL)) == []


@pytest.mark.parametrize(
    ("factor", "key"), [(4, "sum"), (0.25, "divided twice"), (3, "factor"), (1.01, None)]
)
def test_a_wrong_length(factor, key):
    assert keys(*[step([factor * MEAN] * 4, LOCAL)] * 2) == ([key] if key else [])


def test_the_factor_of_the_loss_counts_too():
    # the ranks' losses are multiplied by one number, then the mean gradient by another
    def scaled(loss, gradient):
        local = [loss * gradient for gradient in LOCAL]
        return step([gradient * loss * MEAN] * 4, local, scales=[loss] * 4)

    assert keys(scaled(0.25, 1)) == ["divided twice"]
    product = evidence(scaled(0.25, 1), scaled(0.25, 1))
    for recorded_step in product.steps:
        recorded_step.weighted = True  # 0.25 * loss, and not loss / 4
    assert judge.find_mistakes(product) == [] and [
        finding.key for finding in judge.find_shared_deviation(product)
    ] == ["own length"]
    assert keys(scaled(4, 1)) == ["sum"]
    assert keys(scaled(0.25, 4)) == []  # divided first, then summed
    assert keys(scaled(0.7, 1)) == []  # a weight that somebody wants
    assert keys(scaled(0.7, 3), scaled(0.7, 3)) == ["factor"]


@pytest.mark.parametrize(
    "steps", [[step([3 * MEAN] * 4, LOCAL)], [step([3 * MEAN] * 4, LOCAL, scales=None)] * 2]
)
def test_a_length_in_one_step_or_of_a_loss_that_is_not_known_is_a_remark(steps):
    compared = evidence(*steps)
    assert judge.find_mistakes(compared) == [] and [
        finding.key for finding in judge.find_shared_deviation(compared)
    ] == ["own length"]


def test_rates_that_differ_after_a_warm_up_are_found_in_the_steps_that_are_timed():
    compared = evidence(step([MEAN] * 4, LOCAL))
    for rank in range(4):
        compared.cost[rank]["rates"] = [[0.1], [0.1, None], [0.1 + (rank == 3), None]]
    assert [(finding.key, finding.values["step"]) for finding in judge.find_mistakes(compared)] == [
        ("rate", 3)
    ]


def test_uneven_parts_that_are_weighted_by_hand_are_right():
    parts = [0.7, 0.1, 0.1, 0.1]
    local = [4 * part * gradient for part, gradient in zip(parts, LOCAL, strict=True)]
    assert (
        keys(step([sum(local) / 4] * 4, local, parts=parts, scales=[4 * part for part in parts]))
        == []
    )


def test_a_loss_that_is_not_known_is_a_remark():
    compared = evidence(step([4 * MEAN] * 4, LOCAL, scales=None))
    assert judge.find_mistakes(compared) == [] and judge.find_unknown_loss(compared) == "summed"
    compared = evidence(step([MEAN] * 4, LOCAL, parts=[0.7, 0.1, 0.1, 0.1], scales=None))
    assert judge.find_mistakes(compared) == [] and judge.find_unknown_loss(compared) == "uneven"
    assert judge.find_unknown_loss(evidence(step([MEAN] * 4, LOCAL, scales=None))) is None


def test_what_a_loss_is_multiplied_by():
    def backward(value, reduction="mean"):
        return {"losses": [{"value": 2.0, "reduction": reduction, "terms": 4}], "value": value}

    assert loss_scale([backward(2.0)]) == 1 and loss_scale([backward(0.5)]) == 0.25
    assert loss_scale([backward(1.0)] * 2) == 1  # two calls, each of half the loss
    assert loss_scale([backward(0.5)] * 2) == 0.5 and loss_scale([backward(2.0)] * 2) == 1
    assert loss_scale([backward(0.5, "sum")]) == 1  # a sum, divided by its four terms
    assert (
        loss_scale([backward(2.0, "sum")]) is None
        and loss_scale([{"losses": [], "value": 1.0}]) is None
    )


def test_sums_that_are_divided_by_one_number_of_terms():
    def backward(terms, divisor):
        return {
            "losses": [{"value": 2.0, "reduction": "sum", "terms": terms}],
            "value": 2.0 / divisor,
        }

    # by the mean of both ranks
    ranks = [[backward(10, 20), backward(30, 20)], [backward(25, 20), backward(15, 20)]]
    assert [loss_scale(of_rank) for of_rank in ranks] == [2.0, 2.0] and shares(
        ranks, [["a"], ["b"] * 9]
    ) == [0.5, 0.5]
    # by each rank's own number
    ranks = [[backward(10, 40), backward(30, 40)], [backward(10, 20), backward(10, 20)]]
    assert [loss_scale(of_rank) for of_rank in ranks] == [1.0, 1.0] and shares(
        ranks, [["a"]] * 2
    ) == [2 / 3, 1 / 3]


def test_a_length_that_a_scaler_sets_is_not_looked_at():
    assert keys(step([7 * MEAN] * 4, LOCAL), scaled=True) == []


def test_clipping_after_the_mean_is_right_and_its_norm_tells_a_sum():
    norm = float(MEAN.norm())
    assert keys(step([0.1 * MEAN] * 4, LOCAL, clips=[[("norm", norm)]] * 4)) == []
    assert keys(step([0.1 * MEAN] * 4, LOCAL, clips=[[("norm", 4 * norm)]] * 4)) == ["sum"]


def test_clipping_before_the_mean():
    norms = [float(gradient.norm()) for gradient in LOCAL]
    given = (
        sum(gradient * min(1, 0.5 / norm) for gradient, norm in zip(LOCAL, norms, strict=True)) / 4
    )
    assert keys(step([given] * 4, LOCAL, clips=[[("norm", norm)] for norm in norms])) == [
        "clip first"
    ]


def test_gradients_that_are_clipped_and_never_averaged():
    norms = [float(local.norm()) for local in LOCAL]
    given = [local / norm for local, norm in zip(LOCAL, norms, strict=True)]
    assert keys(step(given, LOCAL, clips=[[("norm", norm)] for norm in norms])) == ["own"]


def test_backward_calls_that_add_up_undivided_are_a_remark_with_their_number():
    def parts(factor, undivided=True):
        recorded_step = step([factor * MEAN] * 4, LOCAL, scales=[1.0] * 4 if undivided else None)
        recorded_step.parts, recorded_step.undivided = 4, undivided
        return evidence(recorded_step)

    for undivided, key in ((True, "undivided parts"), (None, "unknown parts")):
        compared = parts(1, undivided)
        assert judge.find_mistakes(compared) == [] and (key, {"calls": 4}) in remark_rules.remarks(
            compared
        )
        # the gradients are divided by 4 before the step; 4 is the number of ranks, too
        compared = parts(1 / 4, undivided)
        assert judge.find_mistakes(compared) == [] and key not in [
            finding.key for finding in remark_rules.remarks(compared)
        ]
    assert [finding.key for finding in judge.find_mistakes(parts(4))] == ["sum"]


def test_zero_nan_and_infinity_are_findings_and_decide_no_comparison():
    zero, nan = (
        torch.zeros(5, dtype=torch.float64),
        torch.full((5,), float("nan"), dtype=torch.float64),
    )
    assert keys(step([zero] * 4, [zero] * 4)) == ["zero"] and keys(step([zero] * 4, LOCAL)) == [
        "no gradient"
    ]
    for number, key in ((nan, "nan"), (nan.nan_to_num(float("inf")), "infinite")):
        compared = evidence(
            step([4 * MEAN] * 4, LOCAL),
            step([number] * 4, [LOCAL[0], number] * 2),
            count=1,
            not_finite=("local", {1: number, 3: number}),
        )
        assert judge.find_mistakes(compared)[0] == (
            key,
            {"step": 2, "place": "local", "ranks": [1, 3]},
        )
        assert [finding.key for finding in judge.find_mistakes(compared)[1:]] == [
            "sum"
        ]  # in the step before
    assert relative_distance(nan, nan) == 0 and relative_distance(nan, zero) == relative_distance(
        zero, nan
    ) == float("inf")
    assert (
        loss_scale(
            [
                {
                    "losses": [{"value": float("nan"), "reduction": "mean", "terms": 4}],
                    "value": float("nan"),
                }
            ]
        )
        is None
    )


def test_a_rule_that_cannot_be_applied_leaves_what_others_find():
    compared = evidence(step([4 * MEAN] * 4, LOCAL))
    compared.of = None  # the rates cannot be asked for
    assert [finding.key for finding in judge.find_mistakes(compared)] == ["sum", "not judged"]


def test_remedies_fit_the_script():
    def remedy(key, *args, ddp=None, wrapped=(), loader=None, **options):
        compared = evidence(*args, **options)
        for record in compared.seen:
            record.update(ddp=ddp, loader=loader, steps=[{"wrapped": list(wrapped), "calls": []}])
        return next(
            finding.values["remedy"]
            for finding in judge.find_mistakes(compared)
            if finding.key == key
        )

    made, own = {"made": True, "unfrozen": ["b"]}, step(LOCAL, LOCAL)
    part = step([torch.cat([MEAN[:3], local[3:]]) for local in LOCAL], LOCAL)
    assert (
        remedy("own", own) is None and remedy("own", own, ddp=made, wrapped=[False, True]) is None
    )
    assert (
        remedy("own", own, ddp=made)
        == remedy("alone", own, ddp=made, calls=())
        == "not through the wrapper"
    )
    assert remedy("own", own, ddp=made, wrapped=[False]) == "always in no_sync"
    assert remedy("part own", part, ddp=made) == "unfrozen" and remedy("part own", part) is None
    assert remedy("part own", part, ddp={**made, "unfrozen": []}) == "outside"
    same = step([MEAN] * 4, LOCAL, rows=[["a", "b", "c", "d"]] * 4)
    assert remedy("same rows", same) == "rows by hand"
    for sampler, remedy_key in (
        ("_InfiniteConstantSampler", "iterable"),
        ("DistributedSampler", "sampler"),
        ("RandomSampler", None),
    ):
        assert (
            remedy("same rows", same, loader={"samplers": [sampler, "BatchSampler"], "rows": None})
            == remedy_key
        )


def test_gradients_of_one_rank_each():
    assert keys(step(LOCAL, LOCAL)) == ["own"]
    assert keys(step(LOCAL, LOCAL), calls=()) == ["alone"]
    assert keys(step([LOCAL[2]] * 4, LOCAL)) == ["one rank's"]


def test_one_parameter_is_left_out():
    given = [torch.cat([MEAN[:3], local[3:]]) for local in LOCAL]
    (finding,) = judge.find_mistakes(evidence(step(given, LOCAL)))
    assert (finding.key, finding.values["names"]) == ("part own", ["b"])


def test_a_mean_of_means():
    assert keys(step([MEAN] * 4, LOCAL, parts=[0.7, 0.1, 0.1, 0.1])) == ["mean of means"]


def test_what_stays_from_the_step_before():
    later = draw(1)
    mean = sum(later) / 4
    assert keys(step([MEAN] * 4, LOCAL), step([MEAN + mean] * 4, later)) == ["no zero_grad"]
    assert keys(step([MEAN] * 4, LOCAL), step([MEAN] * 4, later)) == ["late"]


def test_what_stays_from_the_step_before_and_is_clipped_with_what_has_come():
    later = draw(1)
    mean, clipped = sum(later) / 4, MEAN / float(MEAN.norm())
    whole = clipped + mean
    norms = [[[("norm", float(gradient.norm()))]] * 4 for gradient in (MEAN, whole)]
    found_keys = keys(
        step([clipped] * 4, LOCAL, clips=norms[0]),
        step([whole / float(whole.norm())] * 4, later, clips=norms[1]),
    )
    assert found_keys == ["no zero_grad"]


def test_clipping_before_a_scaler_has_divided_is_a_remark():
    def is_remarked(kind, norm):
        compared = evidence(step([MEAN] * 4, LOCAL, clips=[[(kind, norm)]] * 4), scaled=True)
        return "clipped scaled" in [finding.key for finding in remark_rules.remarks(compared)]

    norm = float(MEAN.norm())
    # divided by hand
    assert (
        is_remarked("scaled norm", norm)
        and not is_remarked("norm", norm)
        and not is_remarked("scaled norm", norm / 1024)
    )


def test_something_else_is_a_mistake_only_where_the_ranks_do_not_agree():
    assert keys(step([draw(3)[0]] * 3 + [draw(4)[0]], LOCAL)) == ["other"]
    compared = evidence(step([draw(3)[0]] * 4, LOCAL))
    assert judge.find_mistakes(compared) == [] and [
        finding.key for finding in judge.find_shared_deviation(compared)
    ] == ["same but other"]


def test_the_same_rows_in_every_step_and_by_chance_in_one():
    same, other = (
        [["a", "b", "c", "d"]] * 4,
        [[f"{rank}{i}" for i in range(4)] for rank in range(4)],
    )
    assert keys(step([MEAN] * 4, LOCAL, rows=same)) == ["same rows"]
    shuffled = [same[0][rank:] + same[0][:rank] for rank in range(4)]
    assert keys(step([MEAN] * 4, LOCAL, rows=shuffled), step([MEAN] * 4, LOCAL, rows=other)) == []
    # all rows look alike: nothing to be told
    assert keys(step([MEAN] * 4, LOCAL, rows=[["a"] * 4] * 4)) == []


def test_the_same_rows_some_steps_apart():
    def rows(first):
        return [f"row {number}" for number in range(first, first + 4)]

    ahead = [
        step(
            [MEAN] * 4,
            LOCAL,
            rows=[rows(4 * now + 4), *(rows(4 * now + 1000 * rank) for rank in range(3))],
        )
        for now in range(4)
    ]
    (finding,) = judge.find_mistakes(evidence(*ahead))
    assert (finding.key, finding.values["ranks"], finding.values["rows"]) == (
        "shifted rows",
        [0, 1],
        4,
    )


def test_one_seed_on_all_ranks_of_which_one_draws_more_in_between():
    """In nanoGPT, all ranks read the first batch alike.

    Then rank 0 draws the rows that it evaluates on.
    """

    def find_keys(drawn, models=(0,), loader=None):
        steps = [
            step(
                [MEAN] * 2,
                LOCAL[:2],
                rows=[[f"row {4 * number + i}" for i in range(4)] for number in numbers],
                scales=(1.0,) * 2,
            )
            for numbers in drawn
        ]
        given = evidence(*steps)
        for rank, record in enumerate(given.seen):
            record["loader"] = loader
            record["steps"] = [
                {
                    "calls": [
                        {
                            "model": models[number % len(models)],
                            "rows": given.steps[number].rows[rank],
                        }
                    ],
                    "wrapped": [],
                }
                for number in range(len(drawn))
            ]
        return [finding.key for finding in judge.find_mistakes(given)]

    assert find_keys([(0, 0), (5, 1), (6, 2), (7, 3)]) == ["one seed"]
    assert find_keys([(3, 0), (4, 1), (5, 2), (6, 3)]) == ["shifted rows"]
    # the noise that a GAN begins with
    assert find_keys([(0, 0), (5, 1), (6, 2), (7, 3)], models=(0, 1)) == []


def test_the_run_in_one_process_weights_rows_and_the_ranks_may_weight_tokens():
    parts = [0.7, 0.1, 0.1, 0.1]
    compared = evidence(
        step(
            [MEAN] * 4,
            [4 * part * gradient for part, gradient in zip(parts, LOCAL, strict=True)],
            parts=parts,
            scales=[4 * part for part in parts],
        )
    )
    compared.coarse, compared.one_process_gradient = 1e-7, lambda: {"a": MEAN[:3], "b": MEAN[3:]}
    assert remark_rules.measures_disagree(compared)
    whole = sum(part * gradient for part, gradient in zip(parts, LOCAL, strict=True))
    compared.one_process_gradient = lambda: {"a": whole[:3], "b": whole[3:]}
    assert not remark_rules.measures_disagree(compared)


def test_inputs_that_are_padded_to_different_lengths_are_not_put_together():
    def word(*lengths):
        calls = [
            [
                {
                    "model": 0,
                    "random": False,
                    "cut": False,
                    "follows": False,
                    "rows": ["a", "b"],
                    "rows_first": True,
                    "inputs": ((torch.zeros(2, length), torch.zeros(length, length)), {}),
                }
            ]
            for length in lengths
        ]
        return one_process_run._find_obstacle([calls])

    assert (word(5, 5), word(5, 7)) == (None, "shapes")


def test_schedulers_that_wait_for_a_plateau_of_different_losses():
    compared = evidence(step([MEAN] * 4, LOCAL))
    for rank in range(4):
        compared.cost[rank]["metrics"] = [0.5, 0.4]
    assert judge.find_mistakes(compared) == []
    compared.cost[3]["metrics"] = [0.5, 0.41, 0.3]
    (finding,) = judge.find_mistakes(compared)
    assert (finding.key, finding.values["values"]) == ("metrics", [0.4, 0.4, 0.4, 0.41])


def test_rows_in_the_second_dimension():
    # four sequences of three tokens
    tokens, mask = torch.arange(12).reshape(3, 4), torch.zeros(3, 3)
    rows, first = rows_of([tokens, mask], {}, drawn=4)
    assert (len(set(rows)), first) == (4, False) and rows == rows_of([tokens.T], {})[0]
    assert (
        rows_of([tokens], {}, drawn=3)[1]
        and rows_of([tokens], {})[1]
        and len(rows_of([tokens.T], {}, drawn=4)[0]) == 4
    )


def test_parts_of_one_data_set_that_overlap():
    def find_keys(*epochs, sampler="SequentialSampler"):
        given = evidence(step([MEAN] * 2, LOCAL[:2], scales=(1.0,) * 2))
        for record, epoch in zip(given.seen, epochs, strict=True):
            record["loader"] = {
                "rows": ["a"],
                "samplers": [sampler, "BucketSampler"],
                "first_epoch": epoch,
                "length": 40,
                "batch_size": None,
                "indices": [row for batch in epoch for row in batch],
            }
        return [finding.key for finding in judge.find_mistakes(given)]

    # filled up, at most
    assert find_keys([[0, 1, 2, 3], [4, 5, 6, 7]], [[8, 9, 0, 1], [2, 3, 10, 11]]) == []
    assert find_keys([[0, 1, 2, 3], [4, 5, 6, 7]], [[4, 5, 6, 7], [2, 3, 10, 11]]) == ["overlap"]
    # copies in the same step
    assert find_keys([[0, 1, 2, 3], [4, 5, 6, 7]], [[3, 0, 2, 1], [7, 5, 4, 6]]) == []
    # with replacement
    assert find_keys([[0, 0, 1, 2], [3, 4, 5, 6]], [[4, 5, 6, 3], [0, 1, 2, 2]]) == []
    assert (
        find_keys(
            [[0, 1, 2, 3], [4, 5, 6, 7]],
            [[4, 5, 6, 7], [0, 1, 2, 3]],
            sampler="WeightedRandomSampler",
        )
        == []
    )


def test_samplers_of_different_ranks():
    def find_keys(orders):
        given = evidence(step([MEAN] * 4, LOCAL))
        for rank, order in enumerate(orders):
            given.cost[rank]["orders"] = [{**order, "steps": 4}]
        return [finding.key for finding in judge.find_mistakes(given)]

    right = [
        {**order(0, 0, list(range(rank, 40, 4))), "rank": rank, "seed": 0} for rank in range(4)
    ]
    assert find_keys(right) == []
    assert find_keys([{**order, "rank": 0, "order": [1, 2, 3]} for order in right]) == [
        "sampler rank"
    ]
    assert find_keys([{**order, "seed": order["rank"]} for order in right]) == ["sampler seed"]


def test_a_loss_over_rows_that_an_all_gather_without_backward_has_collected():
    def find_keys(factor, scale=1.0):
        recorded_step = step(
            [factor * scale * MEAN] * 4, [scale * part for part in LOCAL], scales=(scale,) * 4
        )
        recorded_step.gathered, recorded_step.right = "whole", recorded_step.right * 4
        return keys(recorded_step)

    assert find_keys(1) == ["gathered"] and find_keys(4) == find_keys(1, scale=4) == []


def test_a_length_that_the_script_sets_anew_in_each_step_is_a_remark():
    compared = evidence(*(step([factor * MEAN] * 4, LOCAL) for factor in (0.3, 0.5, 0.7)))
    assert judge.find_mistakes(compared) == [] and [
        finding.key for finding in judge.find_shared_deviation(compared)
    ] == ["length varies"]
    by_parameter = torch.cat([0.2 * MEAN[:3], 0.5 * MEAN[3:]])
    compared = evidence(step([by_parameter] * 4, LOCAL))
    assert judge.find_mistakes(compared) == [] and [
        finding.key for finding in judge.find_shared_deviation(compared)
    ] == ["scaled by parameter"]


def order(sampler, epoch, drawn, shuffle=True, replicas=4):
    return {
        "sampler": sampler,
        "epoch": epoch,
        "shuffle": shuffle,
        "rank": 0,
        "replicas": replicas,
        "length": len(drawn),
        "order": drawn,
    }


def test_buffers_that_differ_are_a_mistake_unless_ddp_was_made_to_broadcast_them():
    compared = evidence(*[step([MEAN] * 4, LOCAL)] * 3)
    # a second optimiser's step has none
    facts, buffers = compared.of, {1: [{}] * 4, 2: [{"mean": rank} for rank in range(4)]}
    compared.of = lambda number, what: buffers[number] if what == "buffers" else facts(number, what)
    assert [(finding.key, finding.values["step"]) for finding in judge.find_mistakes(compared)] == [
        ("buffers", 3)
    ]
    compared.first["ddp"] = {"sends buffers": True}
    assert judge.find_mistakes(compared) == []


def test_a_sampler_that_is_not_told_the_epoch():
    right = step([MEAN] * 4, LOCAL)
    assert keys(right, orders=[order(0, 0, [3, 1, 2]), order(0, 0, [3, 1, 2])]) == ["set_epoch"]
    assert keys(right, orders=[order(0, 0, [3, 1, 2]), order(0, 1, [1, 3, 2])]) == []
    assert keys(right, orders=[order(0, 0, [1, 2, 3], False), order(0, 0, [1, 2, 3], False)]) == []
    # two samplers
    assert keys(right, orders=[order(0, 0, [3, 1, 2]), order(1, 0, [3, 1, 2])]) == []
    assert keys(right, orders=[order(0, 0, [3, 1, 2], replicas=2)]) == ["replicas"]


def test_shares_are_those_of_the_terms_where_these_are_seen():
    def backward(terms, reduction="mean"):
        return [
            {
                "losses": [{"name": "cross_entropy", "reduction": reduction, "terms": terms}],
                "value": 1.0,
            }
        ]

    rows = [["a"] * 4, ["b"] * 4]
    assert shares([backward(30), backward(10)], rows) == [0.75, 0.25]
    assert shares([backward(30, "none"), backward(10)], rows) == [0.5, 0.5]
    assert shares([[{"losses": [], "value": 1.0}]] * 2, [["a"] * 6, ["b"] * 2]) == [0.75, 0.25]


def test_fit():
    factor, rest = fit(3 * MEAN, MEAN)
    assert factor == pytest.approx(3) and rest < 1e-12
    assert fit(torch.zeros(5, dtype=torch.float64), MEAN) == (0.0, float("inf"))


def test_how_ranks_that_train_alone_put_together_what_they_have_learned():
    def find_mistakes(result, outer):
        start, weights = LOCAL[3], [LOCAL[3] + 0.1 * offset for offset in draw(5, ranks=2)]
        changes = [start - weight for weight in weights]
        got = result(changes if outer else weights)
        facts = {"from": {"a": start}, "given": {"a": got}} if outer else {"after": {"a": got}}
        findings = layouts.find_average_mistakes(
            [{"step": 7, "before": {"a": weight}, **facts} for weight in weights]
        )
        return [(finding.key, finding.values.get("rank")) for finding in findings]

    for outer in (True, False):
        assert find_mistakes(lambda parts: sum(parts) / 2, outer) == []
        assert find_mistakes(sum, outer) == [("weights summed", None)]
    assert find_mistakes(lambda parts: parts[1], True) == [("one rank's weights", 1)]
    assert layouts.find_average_mistakes([None, {"step": 7}]) == []  # one rank has not come so far


def test_buffers_that_a_wrapper_was_to_broadcast_are_a_remark():
    compared = evidence(step([MEAN] * 4, LOCAL), step([MEAN] * 4, LOCAL))
    of = compared.of
    compared.of = lambda number, what: (
        [{"1.mean": rank} for rank in range(4)] if what == "buffers" else of(number, what)
    )
    assert [finding.key for finding in judge.find_mistakes(compared)] == ["buffers"]
    for record in compared.seen:
        record["ddp"] = {"made": True, "sends buffers": True, "unfrozen": []}
    assert judge.find_mistakes(compared) == []
    assert ("buffers not sent", {"names": ["1.mean"]}) in remark_rules.remarks(compared)
