"""The map at the end of unit 01.

Its boxes lead to every unit that teaches a way to train on several devices, from the notebook and
from its copy in work/.
"""

import re
from pathlib import Path

from manyhands.units import units

ROOT = Path(__file__).resolve().parents[2]
NO_BOX = {"00", "01"}  # the cluster itself, and where the map stands


def test_the_map_leads_to_every_unit_that_is_there():
    text = (ROOT / "sources" / "tutorial" / "01_data_parallel.py").read_text(encoding="utf-8")
    section = re.search(r"^# ## The map: .*?(?=^# %%)", text, re.M | re.S).group()
    links = re.findall(r"\[(\d\d)\]\((\S+)\)", section)
    for number, target in links:
        assert Path(target).name.startswith(f"{number}_")
        for folder in ("notebooks", "work"):
            assert (ROOT / folder / target).resolve().is_file() or not (ROOT / folder).is_dir(), (
                target
            )
    assert {number for number, _ in links} == {
        unit.number for unit in units(ROOT) if not unit.planned
    } - NO_BOX
