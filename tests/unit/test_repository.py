"""The repository's address has one source, and what is made of it is right or is not made."""

import pytest

from manyhands import repository, units

ADDRESS = "https://github.com/a-b/course.2"


@pytest.mark.parametrize(
    "written, read",
    [
        (ADDRESS, ADDRESS),
        (f"{ADDRESS}.git", ADDRESS),
        (f" {ADDRESS}/ ", ADDRESS),
        (f"{ADDRESS}.git/", ADDRESS),
    ],
)
def test_the_address_is_read_from_pyproject(tmp_path, written, read):
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nname = "manyhands"\n[project.urls]\nRepository = "{written}"\n'
    )
    assert repository.address(tmp_path) == read


@pytest.mark.parametrize(
    "text", [None, "", "[project]\n", "[project]\nurls = 3\n", "[project.urls\n", "\0"]
)
def test_a_file_that_names_none_gives_none(tmp_path, text):
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert repository.address(tmp_path) == ""


def test_only_github_opens_in_colab_and_kaggle():
    path = "hosted/06_ddp_lab.ipynb"
    assert (
        repository.opens_in_colab(ADDRESS, path)
        == f"https://colab.research.google.com/github/a-b/course.2/blob/main/{path}"
    )
    assert (
        repository.opens_in_kaggle(ADDRESS, path)
        == f"https://kaggle.com/kernels/welcome?src={ADDRESS}/blob/main/{path}"
    )
    for other in (
        "",
        "https://gitlab.com/a/b",
        "https://github.com/a",
        "https://github.com/a/b/c",
        "http://github.com/a/b",
    ):
        assert (
            repository.opens_in_colab(other, path)
            is repository.opens_in_kaggle(other, path)
            is None
        )


@pytest.mark.parametrize(
    "installed, said", [("https://github.com/OWNER/manyhands", False), ("", False), (ADDRESS, True)]
)
def test_outside_a_clone_one_line_says_where_the_notebooks_are(
    tmp_path, monkeypatch, installed, said
):
    monkeypatch.delenv("MANYHANDS_ROOT", raising=False)
    monkeypatch.setattr(units, "_is_clone", lambda folder: False)
    monkeypatch.setattr(repository, "_installed", lambda: installed)
    with pytest.raises(units.NotACloneError) as refused:
        units.find_root(tmp_path)
    line = str(refused.value)
    assert (
        line.startswith("This is not a clone of manyhands. The notebooks are in a clone")
        and "\n" not in line
    )
    assert (f"git clone {ADDRESS}" in line) is said and "OWNER" not in line
