"""What a rank holds: the same picture each time, and its numbers in letters.

Theory stands beside what was measured.
"""

from manyhands.plots import held_by_rank

MEASURED = {"stage 0": (1.01, 1.02, 2.03), "stage 3": (0.4, 0.3, 0.5)}
THEORY = {"stage 0": (1, 1, 2), "stage 3": (0.25, 0.25, 0.5)}


def test_the_picture_is_the_same_each_time_and_names_its_parts():
    text = held_by_rank.stacked(MEASURED, THEORY).text
    assert text == held_by_rank.stacked(MEASURED, THEORY).text
    assert all(word in text for word in (*held_by_rank.PARTS, "theory", "stage 0", "stage 3"))
    # an outline for each part, and one in the legend
    assert text.count("stroke-dasharray: 3.3,2.2") == 6 + 1


def test_the_table_adds_up():
    first, second = held_by_rank.table(MEASURED, THEORY).splitlines()[1:]
    assert first.split() == ["stage", "0", "1.01", "1.02", "2.03", "4.06", "4.00"]
    assert second.split()[-2:] == ["1.20", "1.00"]
