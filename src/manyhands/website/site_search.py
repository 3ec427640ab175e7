"""What the site's search finds: its words, which are Sphinx's but for compounds.

A compound such as "all-reduce" is one word, since "all" alone is too common.
"""

import re

from sphinx.search import languages
from sphinx.search.en import SearchEnglish

COMPOUND = re.compile(r"\w+(?:-\w+)*")


class CourseEnglish(SearchEnglish):
    """English, with compounds and their parts.

    `splitQuery` does the same in the browser with what a reader types.
    """

    js_splitter_code = r"""
var splitQuery = (query) => query
  .replace(/\ball[ _-]?(reduce|gather)\b/gi, "all-$1").replace(/\ball[ _-]?to[ _-]?all\b/gi, "all-to-all")
  .match(/[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*/gu) ?? [];
"""

    def split(self, input: str) -> list[str]:
        """Return the words of a text; a compound counts whole and in its parts."""
        words = []
        for word in COMPOUND.findall(input):
            words += [word, *word.split("-")] if "-" in word else [word]
        return words


def setup(app: object) -> None:
    """Let Sphinx search with the words of `CourseEnglish`."""
    languages["en"] = CourseEnglish
