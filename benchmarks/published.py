"""Published tables, each predicted from two of its rows, as in docs/SIMULATE.md.

`python -m benchmarks.published`
"""

import math

from manyhands.simulate import published


def main():
    """Print each table with its predictions and their errors."""
    for table in published.tables():
        constants, rows = published.predicted(table)
        print(
            f"{table.name} ({table.unit}): "
            + ", ".join(f"{name} {value:.3g}" for name, value in constants.items())
        )
        for row in rows:
            x = f"{row.x['gpus']} GPUs" if isinstance(row.x, dict) else row.x
            deviation = "fitted" if row.fitted else f"{row.predicted / row.published - 1:+.1%}"
            print(f"  {x!s:>10} {row.published:>9.4g} {row.predicted:>9.4g}  {deviation}")
        free = [abs(math.log(row.predicted / row.published)) for row in rows if not row.fitted]
        print(f"  worst: {math.expm1(max(free)):.1%}\n")
    print("Not fitted, from the speed of one GPU and the published rates of the links:")
    errors = []
    for name, gpus, number, predicted in published.unfitted():
        errors.append(abs(predicted / number - 1))
        print(
            f"  {name}, {gpus} GPUs: {number:.5g} published, {predicted:.5g} predicted, "
            f"{predicted / number - 1:+.1%}"
        )
    print(
        f"  {sum(error <= 0.1 for error in errors)} of {len(errors)} rows within 10 %, worst "
        f"{max(errors):.0%}\n"
    )
    for spread in (0.0, 0.01, 0.02):
        base, many = published.goyal(1, spread), published.goyal(44, spread)
        print(
            f"Goyal, ranks {spread:.0%} apart: 8 GPUs {base:.4f} s, 352 GPUs {many:.4f} s: "
            f"{many / base - 1:+.1%} (published +12%)"
        )
    part = published.horovod(512) / 512 / published.horovod(1)
    print(f"Horovod, ResNet-101: 512 GPUs against one: {part:.1%} (published 90%)")


if __name__ == "__main__":
    main()
