"""The figures of docs/BENCHMARKS.md: `python -m benchmarks` prints them all,
`python -m benchmarks start` one of them."""
