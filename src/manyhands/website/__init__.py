"""The course as a web site, to be read from the disk or from a server.

`manyhands site` writes `build/site/`.

    lists        the first page, with cards for the units, and the lists of tutorials, labs, slides and manuals
    lay_out      what is committed (notebooks, labs, docs, decks), side by side as the source of a site
    links        links of the texts, where a page stands elsewhere in the site
    broken       notebooks that cannot be shown, with cell and cause
    extension    what Sphinx does with a page beyond what it does for everyone:
                 web_predictions, try_it, glossary, site_search, heads
    sphinx_run   Sphinx over the source, and its complaints in the words of the course
    settings/    Sphinx's settings, the look, the side bar
    printed      the cheat sheet as a PDF, by Chromium

Nothing is executed: the pages show the outputs that are stored.
"""
