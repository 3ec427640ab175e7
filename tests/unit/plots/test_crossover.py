"""The picture of predicted and measured times."""

from manyhands.plots.crossover import crossover, crossover_table

MEASURED = {"ring": {10: 6e-3, 1000: 8e-3}, "tree": {10: 4e-3, 1000: 2e-2}}
PREDICTED = {"ring": lambda n: 6e-3 + n * 2e-6, "tree": lambda n: 4e-3 + n * 2e-5}


def test_the_picture_has_lines_marks_a_crossing_and_a_table():
    text = crossover(PREDICTED, MEASURED, at=111.1).text
    assert text == crossover(PREDICTED, MEASURED, at=111.1).text
    assert all(word in text for word in ("ring", "tree", "seconds", "111 bytes"))
    assert (
        "111 bytes" not in crossover(PREDICTED, MEASURED).text
        and "bytes" in crossover(PREDICTED, MEASURED, at=0).text
    )
    assert (
        "Sekunden"
        in crossover(
            PREDICTED,
            MEASURED,
            words={"x": "Bytes", "y": "Sekunden", "key": "", "crossover": "{size}"},
        ).text
    )
    lines = crossover_table(PREDICTED, MEASURED).splitlines()
    assert len(lines) == 3 and lines[2].split() == "1000 8 / 8 = 1.00 20 / 24 = 0.83".split()


def test_bands_are_drawn_around_what_they_belong_to():
    bands = {"ring": lambda n: (PREDICTED["ring"](n) * 0.9, PREDICTED["ring"](n) * 1.1)}
    assert len(crossover(PREDICTED, MEASURED, bands=bands).text) > len(
        crossover(PREDICTED, MEASURED).text
    )
