"""Fill in pages of HTML with Jinja, which escapes every value that is not marked as safe."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@functools.cache
def environment(package: str) -> Environment:
    """The templates of a package, which are the files `*.html` next to its modules.

    A value that a template names and does not get is an error. Jinja is imported by the first page,
    because most programs that import these modules write none.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
