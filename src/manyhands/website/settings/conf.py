"""Sphinx's settings for the site.

`manyhands site` copies them beside the pages that it lays out.
"""

from manyhands.units import paths, units
from manyhands.website.lists import breakable

project, author, language = "manyhands", "manyhands", "en"
copyright = "the manyhands authors; text CC BY 4.0, code Apache 2.0"
extensions = ["myst_nb", "sphinx_copybutton", "manyhands.website.extension"]
exclude_patterns = ["extra", "static", "templates"]

# notebooks: as they are stored
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath", "html_image"]
myst_heading_anchors = 4
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}  # its menu would fetch more files

# the look
# without a list of headings
LISTS = ("index", "notebooks/index", "labs/index", "slides/index", "docs/index")
html_theme = "pydata_sphinx_theme"
html_title = "manyhands"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["course.css"]
html_js_files = ["show_found_words.js", "predictions.js", "moving_pictures.js"]
html_use_index = False  # its terms are for the search; the glossary is a page
html_favicon = "static/hands.svg"
html_copy_source, html_sourcelink_suffix, html_show_sourcelink = True, "", True
templates_path = ["templates"]
html_sidebars = {"**": ["units-nav"]}
html_theme_options = {
    "logo": {
        "text": "manyhands",
        "image_light": "_static/hands.svg",
        "image_dark": "_static/hands.svg",
        "alt_text": "",
    },
    "search_bar_text": "Search the course",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "article_header_start": ["unit-links"],
    "secondary_sidebar_items": {"**": ["page-toc"], **{name: [] for name in LISTS}},
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_exclude = ".linenos, .gp, .go"

COURSE = [
    {
        "name": unit.name,
        "number": unit.number,
        "title": breakable(unit.title),
        "there": not unit.planned,
        "path": next((path for path, numbers in paths().items() if unit.number in numbers), ""),
    }
    for unit in units()
]
html_context = {"course": COURSE, "default_mode": "auto"}
