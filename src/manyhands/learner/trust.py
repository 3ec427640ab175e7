"""Sign the course's own notebooks, so that JupyterLab shows the pictures in their stored outputs.

JupyterLab shows no SVG in a notebook that nobody on this machine has run or signed. A signature
covers the content: that of a file of the clone covers the learner's fresh copy of it.
"""

from contextlib import suppress
from pathlib import Path

FOLDERS = ("notebooks", "labs", "solutions", "solved")  # the last: on an instructor's server


def sign_course(root: str | Path, data_folder: Path) -> None:
    """Sign every notebook of the clone in the signature store below `data_folder`.

    A broken notebook is passed over.
    """
    import nbformat
    from nbformat.sign import NotebookNotary

    data_folder.mkdir(parents=True, exist_ok=True)
    with NotebookNotary(data_dir=str(data_folder)) as notary:
        for path in sorted(
            path for folder in FOLDERS for path in (Path(root) / folder).rglob("*.ipynb")
        ):
            with suppress(OSError, ValueError):  # NBFormatError is a ValueError
                notary.sign(nbformat.read(path, as_version=4))
