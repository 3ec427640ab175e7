"""The tests that need a GPU, but those of notebooks, which are an item of their own."""

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from gpu_tell import failure, figure, lacking

results = str(Path(os.environ["GPU_SCRATCH"], "tests.xml"))
code = pytest.main(
    [
        "-p",
        "no:cacheprovider",
        "-q",
        "-m",
        "gpu",
        "-k",
        "not notebook",
        f"--junitxml={results}",
        "tests/dist/test_gpu.py",
        "tests/dist/test_gpu_communication.py",
        "tests/dist/test_ledger_memory.py",
    ]
)
if not os.path.exists(results):
    failure("pytest did not begin", "see the output of this item")
    sys.exit(int(code) or 1)
cases = list(ElementTree.parse(results).iter("testcase"))
skipped = 0
for case in cases:
    bad = [part for part in case if part.tag in ("failure", "error")]
    skipped += any(part.tag == "skipped" for part in case)
    for part in bad:
        failure(case.get("name"), part.text or part.get("message"))
    if not bad and not any(part.tag == "skipped" for part in case):
        figure(case.get("name"), float(case.get("time")), "s")
if skipped == len(cases):
    lacking("All of these tests need a GPU, and there is none.")
sys.exit(code)
