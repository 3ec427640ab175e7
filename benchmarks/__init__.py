"""The figures that the README quotes: `python -m benchmarks` prints them all,
`python -m benchmarks start` one of them."""
