"""Unit 05's checks: right answers pass under every seed.

Each mistake has a look that no other one has, and the hidden measurements are what they should be.
"""

import itertools

import numpy as np
import pytest

from manyhands import simulate
from manyhands.checks import communication_costs
from manyhands.checks.communication_costs import cases, diagnosis, fits
from manyhands.checks.communication_costs.messages import CRITERIA, HINTS, MISTAKES
from manyhands.simulate import bootstrap, interval

SEEDS = [0, 1, 4711, 1234, 2**40 + 7]


def line(n, t, weights=None):
    """(latency_s, bytes_per_s) and the sum of squared relative errors."""
    beta, alpha = np.polyfit(n, t, 1, w=weights)
    return (alpha, 1 / beta), np.sum(((alpha + beta * n) / t - 1) ** 2)


def two_lines(measured, middle=np.median):
    """The lines below and from the change on, where two weighted lines fit best."""
    n, t = (
        np.array(measured.n_bytes, float),
        np.array([middle(repeated_s) for repeated_s in measured.times_s]),
    )
    pairs = [
        (line(n[:cut], t[:cut], 1 / t[:cut]), line(n[cut:], t[cut:], 1 / t[cut:]))
        for cut in range(4, len(n) - 3)
    ]
    (small, _), (large, _) = min(pairs, key=lambda pair: pair[0][1] + pair[1][1])
    return small, large


@pytest.mark.parametrize("seed", [*range(20), *SEEDS])
def test_right_fits_pass_under_every_seed(seed):
    for measured in cases.measurements(seed):
        for middle in (np.median, lambda repeated_s: np.quantile(repeated_s, 0.3)):
            got = two_lines(measured, middle)[1]
            assert [fits.fit_problem(k, measured, got) for k in (0, 1)] == [None, None]


def wrong_fits(measured):
    n, t = (
        np.array(measured.n_bytes, float),
        np.array([np.median(repeated_s) for repeated_s in measured.times_s]),
    )
    (small, right), cut, half = two_lines(measured), measured.cut, len(n) // 2
    return {
        "disturbed": two_lines(measured, np.mean)[1],
        "largest decide": line(n[cut:], t[cut:])[0],
        "smallest message": (t[cut], right[1]),
        "latency left in": (right[0], n[-1] / t[-1]),
        "beta": (right[0], 1 / right[1]),
        "no pair": (diagnosis.NAN, diagnosis.NAN),
        "exchanged": right[::-1],
        "one line": line(n, t, 1 / t)[0],
        "small protocol": small,
        "sizes of both": line(n[half:], t[half:], 1 / t[half:])[0],
        "too few sizes": line(n[-4:], t[-4:], 1 / t[-4:])[0],
        "other latency": (0.7 * right[0], right[1]),
        "other bandwidth": (right[0], 1.3 * right[1]),
    }


@pytest.mark.parametrize("seed", [*range(8), *SEEDS])
@pytest.mark.parametrize("mistake", wrong_fits(cases.measurements(0)[0]))
def test_wrong_fits_fail_under_every_seed_and_are_named(mistake, seed):
    problems = []
    for measured in cases.measurements(seed):
        got = wrong_fits(measured)[mistake]
        problems += [fits.fit_problem(k, measured, got) for k in (0, 1)]
    mistakes = [problem["mistake"] for problem in problems if problem]
    start = MISTAKES[mistake].split("{")[0][:40]
    assert mistakes and any(text.startswith(start) for text in mistakes)


def test_exchanged_numbers_are_told():
    measured = cases.measurements(3)[1]
    assert fits.fit_problem(0, measured, measured.large[::-1])["mistake"] == MISTAKES["exchanged"]


def test_a_bandwidth_that_is_far_off_is_not_laid_on_disturbed_times():
    measured = cases.measurements(3)[1]
    assert (
        fits.fit_problem(1, measured, (measured.large.latency_s, 1.3))["mistake"]
        == MISTAKES["other bandwidth"]
    )


def test_a_number_that_cannot_be_divided_by_gets_a_verdict():
    for measured in cases.measurements(3):
        assert all(
            fits.fit_problem(k, measured, got)
            for got in ((0.0, 0.0), (-1.0, -1.0), (float("inf"), float("inf")))
            for k in (0, 1)
        )


@pytest.mark.parametrize("seeds", [range(500), SEEDS])
def test_each_protocol_sends_four_sizes_and_no_count_of_sizes_is_good_for_all(seeds):
    cuts = {}
    for seed in seeds:
        for kind, (large, small, cut, n_bytes, times_s) in enumerate(cases.measurements(seed)):
            assert 4 <= cut <= len(n_bytes) - 4 and len(n_bytes) == len(times_s)
            assert all(1.7 < later / size < 2.4 for size, later in itertools.pairwise(n_bytes))
            assert (
                large.latency_s > 2.9 * small.latency_s
                and large.bytes_per_s > 1.9 * small.bytes_per_s
            )
            cuts.setdefault(kind, set()).add((cut, len(n_bytes)))
    assert all(len(of_kind) > 1 for of_kind in cuts.values())
    assert not set.intersection(
        *({count - cut for cut, count in of_kind} for of_kind in cuts.values())
    )


def test_measurements_are_disturbed_but_their_median_is_true():
    far, late, first = [], [], []
    for seed in range(10):
        for large, small, cut, n_bytes, times_s in cases.measurements(seed):
            model = [
                simulate.message_s(n, *(small if k < cut else large)) for k, n in enumerate(n_bytes)
            ]
            far += [
                np.median(repeated_s) / right - 1
                for repeated_s, right in zip(times_s, model, strict=True)
            ]
            late += [
                np.mean(np.array(repeated_s) > 1.5 * right)
                for repeated_s, right in zip(times_s, model, strict=True)
            ]
            first += [
                repeated_s[0] / right for repeated_s, right in zip(times_s, model, strict=True)
            ]
            assert [len(repeated_s) for repeated_s in times_s] == [
                max(25, 41 - 2 * k) for k in range(len(n_bytes))
            ], "the counts do not show the change"
    assert abs(np.mean(far)) < 0.01 and 0.1 < np.mean(late) < 0.2 and min(first) >= 2
    assert cases.measurements(1) != cases.measurements(2)


def test_our_own_bands_are_finer_than_the_tolerance_for_a_learners():
    # the public seed, under which learners work
    _, n_bytes, repeated = cases.many_measurements(0, diagnosis.BANDS)
    bands = [
        np.array(
            [
                np.transpose(interval(bootstrap(n_bytes, times_s, resamples, seed), 0.9))
                for times_s in repeated
            ]
        )
        for resamples, seed in ((communication_costs.RESAMPLES, 0), (20_000, 7))
    ]
    ratios = [mine / fine for mine, fine in zip(*diagnosis.widths(*bands), strict=True)]
    assert max(abs(ratio - 1) for ratio in ratios) < 0.05, ratios


@pytest.mark.parametrize("seed", SEEDS)
def test_bands_of_the_right_level_pass(seed):
    true, n_bytes, repeated = cases.many_measurements(seed, diagnosis.BANDS)
    ours = np.array(
        [np.transpose(interval(bootstrap(n_bytes, times_s), 0.9)) for times_s in repeated]
    )
    again = np.array(
        [
            np.transpose(interval(bootstrap(n_bytes, times_s, resamples=200, seed=9), 0.9))
            for times_s in repeated
        ]
    )
    assert (
        diagnosis.covers_problem(true, again, 0.9) is None
        and diagnosis.width_problem(again, ours, 0.9) is None
    )
    assert diagnosis.width_evidence(again, ours) == diagnosis.width_evidence(ours, ours)
    middle, half = again.mean(2, keepdims=True), np.diff(again, axis=2) / 2
    for factor, text in (
        (0.72, "at both ends together"),
        (1.6, "too wide"),
        (9, "single"),
        (0.3, "too narrow"),
    ):
        other = np.concatenate([middle - factor * half, middle + factor * half], axis=2)
        assert text in diagnosis.width_problem(other, ours, 0.9)["mistake"]
        assert diagnosis.width_evidence(other, ours) != diagnosis.width_evidence(ours, ours)
    assert (
        "exchanged" in diagnosis.covers_problem(true, again[:, ::-1], 0.9)["mistake"]
        and "exchanged" in diagnosis.width_problem(again[:, ::-1], ours, 0.9)["mistake"]
    )
    assert (
        "For level 0.85 it was"
        in diagnosis.width_problem(
            np.concatenate([middle - 4 * half, middle + 4 * half], axis=2), ours, 0.5, 0.85
        )["mistake"]
    )
    assert "transposed" in diagnosis.covers_problem(true, again.transpose(0, 2, 1), 0.9)["mistake"]
    assert "upside down" in diagnosis.covers_problem(true, again[:, :, ::-1], 0.9)["mistake"]
    assert (
        "two pairs" in diagnosis.covers_problem(true, np.full_like(again, np.nan), 0.9)["mistake"]
    )


def test_what_is_no_answer_does_not_stop_the_check():
    for answer in (None, 3, "ab", [1], [[1, 2], None], {"a": 1}):
        assert np.shape(diagnosis.two_pairs(answer)) == (2, 2)
        assert len(diagnosis.pair(answer)) == 2
    assert np.isnan(diagnosis.number("many"))


# ------------------------------------------------------------------ the ping-pong

CASE = {
    "n_bytes": 40,
    "peer": 2,
    "repeats": 2,
    "warm_up": 1,
    "rounds_s": [9.0, 1.0, 3.0],
    "reported": [0.5, 1.5],
    "others": [],
}


def played(messages, **changes):
    return [{**CASE, "messages": of_rank, **changes} for of_rank in messages]


ROUND = [("send", 2, 40), ("recv", 2, 40)]
ANSWER = [("recv", 0, 40), ("send", 0, 40)]


@pytest.mark.parametrize(
    "messages, text",
    [
        ([ROUND * 3, [], ANSWER * 3], None),
        ([ROUND * 2, [], ANSWER * 2], "warm-up is missing"),
        ([ROUND * 3, ANSWER, ANSWER * 3], "Only rank 0 and rank 2"),
        ([[("send", 1, 40)] * 3, [], []], "plays with `peer`"),
        ([[("send", 2, 160)] * 3, [], []], "has four"),
        ([[("send", 2, 8)] * 3, [], []], "do not have the size"),
        ([[("send", 2, 0)] * 3, [], []], "do not have the size"),
        ([ROUND[:1] * 3, [], ANSWER[:1] * 3], "one way only"),
        ([ROUND * 5, [], ANSWER * 5], "1 + 2 rounds"),
    ],
)
def test_messages_of_a_ping_pong(messages, text):
    problem = diagnosis.messages_problem(played(messages))
    assert text in problem["mistake"] if text else problem is None


def test_the_size_that_is_wrong_is_shown():
    problem = diagnosis.messages_problem(
        played([ROUND * 3, [], [("recv", 0, 40), ("send", 0, 1)] * 3])
    )
    assert (problem["rank"], problem["expected"], problem["got"]) == (2, "40 bytes", "1 bytes")


def test_sizes_are_such_that_only_single_bytes_have_them():
    pytest.importorskip("torch")
    from manyhands.checks.communication_costs.ranks import cases as games

    assert all(game["n_bytes"] % 2 for seed in SEEDS for game in games(seed))


def test_other_calls_are_told():
    assert (
        "send and recv"
        in diagnosis.messages_problem(played([ROUND * 3, [], ANSWER * 3], others=["allreduce"]))[
            "mistake"
        ]
    )


@pytest.mark.parametrize(
    "reported, text",
    [
        ([0.5, 1.5], None),
        ([1, 3], "round trips"),
        ([4.5, 0.5, 1.5], "warm-up is in"),
        ([4.5, 0.5], "warm-up is in"),
        ([0.3, 0.9], "before the answer"),
        ([1, 1], "mean"),
        ([0.5, 2], "add up"),
        ([0.25, 0.75], "halved twice"),
        ([0, 0], "All times are 0"),
        ([0.5], "one time for each round"),
        ([7, 7], "not the times"),
        (None, "a list of seconds"),
    ],
)
def test_times_of_a_ping_pong(reported, text):
    problem = diagnosis.times_problem({**CASE, "reported": reported})
    assert text in problem["mistake"] if text else problem is None


def test_the_clock_moves_with_messages():
    pytest.importorskip("torch")
    from types import SimpleNamespace

    from manyhands.checks.communication_costs.ranks import Clock
    from manyhands.checks.communication_costs.ranks import cases as games

    entries = []
    clock = Clock(entries, [1.0, 2.0])
    readings = [clock()]
    for call in ("send", "recv", "barrier", "send", "recv", "recv"):
        entries.append(SimpleNamespace(call=call))
        readings.append(clock())
    assert readings == pytest.approx([0, 0.3, 1, 1, 1.6, 3, 3])
    assert (
        games(1) != games(2)
        and next(game["warm_up"] for game in games(1)) == 0
        and all(game["warm_up"] for game in games(1)[1:])
    )


# ------------------------------------------------------------------ predictions


@pytest.mark.parametrize("seed", SEEDS)
def test_worlds_have_all_kinds(seed):
    sizes = [p for p, *_ in cases.worlds(seed)]
    assert (
        sizes[:4] == [1, 2, 3, 4]
        and max(sizes) >= 900
        and min(p for p, *_ in cases.worlds(seed, least=2)) == 2
    )
    for p, n_bytes, link in cases.worlds(seed):
        assert diagnosis.gather_problem(
            p, n_bytes, link, played_gather_s(p, n_bytes, link)
        ) is None and diagnosis.gather_problem(p, n_bytes, link, diagnosis.NAN)


def played_gather_s(p, n_bytes, link):
    """The seconds of an all-gather, round by round.

    A rank goes on when it has sent its part and received its neighbour's.
    """
    clocks = np.zeros(p)
    for _ in range(p - 1):
        clocks = (
            np.maximum(clocks, np.roll(clocks, 1)) + link.latency_s + n_bytes / p / link.bytes_per_s
        )
    return float(clocks.max())


def played_s(p, n_bytes, pieces, link):
    """The chain part by part: when each has arrived at each rank."""
    part_s, arrived = link.latency_s + n_bytes / pieces / link.bytes_per_s, [0.0] * pieces
    for _ in range(p - 1):
        free = 0.0
        for piece in range(pieces):
            free = arrived[piece] = max(free, arrived[piece]) + part_s
    return arrived[-1]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_chain_takes_what_its_parts_take_if_they_are_played_one_by_one(seed):
    for p, n_bytes, pieces, link in cases.chains(seed):
        assert diagnosis.chain_time_s(p, n_bytes, pieces, link) == pytest.approx(
            played_s(p, n_bytes, pieces, link)
        )
        assert (
            diagnosis.chain_problem(p, n_bytes, pieces, link, played_s(p, n_bytes, pieces, link))
            is None
        )
    for p, n_bytes, link in cases.worlds(seed, least=2):
        best, tried = (
            diagnosis.best_pieces(p, n_bytes, link),
            [*range(1, 40), *np.geomspace(40, 1e5, 50).astype(int)],
        )
        assert diagnosis.chain_with(p, n_bytes, link, best) <= min(
            diagnosis.chain_with(p, n_bytes, link, int(number)) for number in tried
        ) * (1 + 1e-9)
        assert (
            diagnosis.pieces_problem(p, n_bytes, link, best) is None
            and diagnosis.pieces_problem(p, n_bytes, link, float(best)) is None
        )
        assert diagnosis.chain_with(p, n_bytes, link, float(best)) == diagnosis.chain_with(
            p, n_bytes, link, best
        )
        assert np.isnan(
            [
                diagnosis.chain_with(p, n_bytes, link, number)
                for number in (best + 0.5, 0.0, float("inf"), float("nan"))
            ]
        ).all()
        assert diagnosis.pieces_problem(p, n_bytes, link, best + 0.5) and diagnosis.pieces_problem(
            p, n_bytes, link, 0
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_numbers_of_ranks_have_gaps(seed):
    """So that a search by halving, or one that stops at the first gap, gives a wrong number."""
    largest = []
    for n_bytes, link, limit in cases.sizes_for_ranks(seed):
        right = diagnosis.not_slower(n_bytes, link, limit)
        for p in (2, 3, right[-1], min(limit, right[-1] + 1), limit):
            assert (p in right) == (
                simulate.ring_s(p, n_bytes, *link) <= simulate.tree_s(p, n_bytes, *link)
            )
        assert diagnosis.ranks_problem(n_bytes, link, limit, right[-1]) is None
        assert all(
            diagnosis.ranks_problem(n_bytes, link, limit, wrong)
            for wrong in (right[-1] + 1, 0, right[-1] - 0.5, diagnosis.NAN)
        )
        largest.append((right[-1], len(right)))
    assert [last != count for last, count in largest] == [True, True, True, False, False]
    assert largest[3][0] == 3 and largest[4][0] == cases.sizes_for_ranks(seed)[4][2]


@pytest.mark.parametrize("seed", SEEDS)
def test_buckets_have_a_best_size_that_is_found_by_trying(seed):
    backwards = cases.backwards(seed)
    fixed = [
        {k for k in range(1, 81) if not diagnosis.best_problem(case, sum(case.n_bytes) / k)}
        for case in backwards
    ]
    assert all(fixed) and not set.intersection(*fixed), "no number of buckets is good for all"
    for number, case in enumerate(backwards):
        total = sum(case.n_bytes)
        for some in (
            [total / k for k in range(1, len(case.n_bytes) + 1)],
            [2**k for k in range(2, 40)],
        ):
            best = min(some, key=lambda size: cases.time_s(case, size))
            assert diagnosis.best_problem(case, best) is None
        assert number == 2 or "With one bucket" in diagnosis.best_problem(case, total)["mistake"]
        assert (
            number == 3 or "With a message for each" in diagnosis.best_problem(case, 0)["mistake"]
        )
        assert diagnosis.best_problem(case, diagnosis.NAN) and diagnosis.best_problem(case, -1)
        assert diagnosis.best_problem(case, float("inf")) == diagnosis.best_problem(
            case, total
        ) and diagnosis.time_with(case, float("inf")) == diagnosis.time_with(case, total)
        assert (
            number == 3
            or "is it the time"
            in diagnosis.best_problem(case, min(0.9, cases.best_s(case)))["mistake"]
        )
        for limit in cases.limits(case):
            assert diagnosis.finish_problem(case, limit, cases.time_s(case, limit)) is None
            assert diagnosis.finish_problem(case, limit, diagnosis.NAN)


def test_every_check_has_a_hint_and_every_text_a_check():
    assert {name.split("-", 1)[1] for name in HINTS} == set(CRITERIA)
    assert all(MISTAKES.values()) and all(HINTS.values())
