"""docs/SYSTEMS.md: where each thing of the five documents runs.

Its links lead to files that are there or to units that are planned, its sections exist.
"""

import re
from pathlib import Path

import pytest

from manyhands.units import units

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "SYSTEMS.md"
DEFINED = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.M)
USED = re.compile(r"\[([^\]]+)\](?:\[([^\]]+)\]|(?![\[(:]))")  # [text][key] or [key]
INLINE = re.compile(r"\]\(([^)]+)\)")
# of a page, or of a source, where it is a comment
HEADING = re.compile(r"^(?:# )?#{2,3} (.+)$", re.M)


def slug(heading):
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def rows(text):
    """The cells of all rows of the tables "it shows | where it runs | what became of it"."""
    tables = re.findall(r"^\| it shows \|.*\n\|---\|---\|---\|\n((?:\|.*\n)+)", text, re.M)
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for table in tables
        for line in table.splitlines()
    ]


def broken_links(text, root, names):
    """Return links to files that are neither there nor the tutorial of a unit in `names`.

    Also anchors without a heading, references without a target, and unused references.
    """
    sentences, targets = [], dict(DEFINED.findall(text))
    body = DEFINED.sub("", text)
    used = {key or shown for shown, key in USED.findall(body)}
    sentences += [f"no target: [{key}]" for key in sorted(used - set(targets))] + [
        f"never used: [{key}]" for key in sorted(set(targets) - used)
    ]
    sentences += [
        f"[{key}] leads to {target}"
        for key, target in targets.items()
        if re.fullmatch(r"\d\d", key) and f"/{key}_" not in target
    ]
    for target in [*targets.values(), *INLINE.findall(body)]:
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        path = (root / "docs" / name).resolve()
        planned = (
            path.parent == root / "notebooks" and path.stem in names and path.suffix == ".ipynb"
        )
        if not path.exists() and not planned:
            sentences.append(f"not there: {target}")
        elif anchor and anchor not in {
            slug(heading) for heading in HEADING.findall(path.read_text(encoding="utf-8"))
        }:
            sentences.append(f"no such heading: {target}")
    return sentences


def missing_sections(text, sources):
    """Sections, in italics behind a unit's number, that its tutorial does not have.

    `sources`: number -> text of those that are written.
    """
    sentences = []
    for _, where, _ in rows(text):
        for number, behind in re.findall(r"\[(\d\d)\]([^\[;]*)", where):
            known = HEADING.findall(sources[number]) if number in sources else None
            sentences += [
                f"{number} has no section {name!r}"
                for name in re.findall(r"\*([^*]+)\*", behind)
                if known is not None and name not in known
            ]
    return sentences


def scripts_of_others(text):
    """Links to a script that stand behind the number of another unit than the script's own."""
    scripts = []
    for _, where, _ in rows(text):
        for number, behind in re.findall(r"\[(\d\d)\]((?:(?!\[\d\d\]).)*)", where):
            scripts += [
                f"{name} stands behind {number}"
                for name in re.findall(r"/scripts/([^)#]+)\)", behind)
                if name[:2] != number
            ]
    return scripts


def no_longer_planned(text, planned):
    """Units that are called planned, and are not in `planned`."""
    parts = [part for _, where, _ in rows(text) for part in where.split(";") if "(planned)" in part]
    return sorted(
        {number for part in parts for number in re.findall(r"\[(\d\d)\]", part)} - set(planned)
    )


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def test_links_lead_to_what_is_there_or_planned(page):
    assert broken_links(page, ROOT, {unit.name for unit in units(ROOT) if unit.planned}) == []


def test_sections_exist(page):
    written = {
        path.name[:2]: path.read_text(encoding="utf-8")
        for path in (ROOT / "sources" / "tutorial").glob("*.py")
    }
    assert missing_sections(page, written) == []


def test_scripts_stand_behind_their_own_unit(page):
    assert scripts_of_others(page) == []


def test_only_planned_units_are_called_planned(page):
    ready = no_longer_planned(page, [unit.number for unit in units(ROOT) if unit.planned])
    assert not ready, f"units {ready} are there now: take their '(planned)' out of docs/SYSTEMS.md"


def test_each_document_has_its_table_and_each_row_its_place(page):
    parts = re.split(r"^## \d\. .*\n", page, flags=re.M)[1:]
    assert len(parts) == 5 and all(rows(part) for part in parts)
    for row in rows(page):
        assert len(row) == 3 and all(row), row
        assert re.search(r"\[\d\d\]|not run|CHAINERMN", row[1]), (
            f"neither a place nor 'not run': {row[0]}"
        )


def test_a_bad_page_is_noticed(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").write_text("## A heading, here\n")
    good = (
        "| it shows | where it runs | what became of it |\n|---|---|---|\n| x | [06], *DDP*; [15] "
        "(planned) | [said][paper], [page](there.md#a-heading-here) |\n"
    )
    good += (
        "\n[06]: ../notebooks/06_ddp.ipynb\n[15]: ../notebooks/15_mesh.ipynb\n[paper]: "
        "https://example.org\n"
    )
    names, sources = {"06_ddp", "15_mesh"}, {"06": "# ## DDP\n"}
    assert (
        broken_links(good, tmp_path, names)
        == missing_sections(good, sources)
        == no_longer_planned(good, ["15"])
        == []
    )
    assert broken_links(good, tmp_path, {"06_ddp"}) == ["not there: ../notebooks/15_mesh.ipynb"]
    assert broken_links(good.replace("there.md", "gone.md"), tmp_path, names) == [
        "not there: gone.md#a-heading-here"
    ]
    assert broken_links(good.replace("#a-heading-here", "#another"), tmp_path, names) == [
        "no such heading: there.md#another"
    ]
    assert broken_links(good.replace("[said][paper]", "[said][poster]"), tmp_path, names) == [
        "no target: [poster]",
        "never used: [paper]",
    ]
    assert broken_links(good.replace("[06]:", "[07]:"), tmp_path, names) == [
        "no target: [06]",
        "never used: [07]",
        "[07] leads to ../notebooks/06_ddp.ipynb",
    ]
    assert missing_sections(good.replace("*DDP*", "*FSDP*"), sources) == [
        "06 has no section 'FSDP'"
    ]
    assert no_longer_planned(good, ["06"]) == ["15"]
    script = "[script](../notebooks/scripts/06_train.py)"
    assert scripts_of_others(good.replace("*DDP*", script)) == []
    assert scripts_of_others(good.replace("(planned)", f"(planned): {script}")) == [
        "06_train.py stands behind 15"
    ]
    assert broken_links(good.replace("*DDP*", script), tmp_path, names) == [
        "not there: ../notebooks/scripts/06_train.py"
    ]
