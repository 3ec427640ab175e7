"""The web site, built once and read as people read it: from the disk, in a real browser."""

import io
import json
import re
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
from docutils import nodes

import needs
from in_browser import ALL_RULES, shuts_out
from manyhands.units import paths, units
from manyhands.website import glossary, heads
from manyhands.website.extension import title_of

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
THERE = [unit for unit in units(ROOT) if not unit.planned]
# one of each kind, of notebooks the shortest; 06 has the longest words and tables
LOOKED_AT = [
    "index.html",
    "notebooks/00_preflight.html",
    "labs/00_preflight/00_preflight.html",
    "docs/GLOSSARY.html",
    "docs/CHEAT_SHEET.html",
    "search.html?q=staleness",
    "labs/index.html",
    "notebooks/index.html",
    "docs/index.html",
]
NARROW = [
    *LOOKED_AT,
    "README.html",
    "notebooks/06_ddp.html",
    "labs/06_ddp/06_ddp.html",
    "docs/SYSTEMS.html",
    "slides/index.html",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the whole site."""
    needs.package("sphinx", remedy="make site")
    needs.program("chromium", package="chromium")
    folder = tmp_path_factory.mktemp("web") / "site"
    done = run_site(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def run_site(root, folder):
    return subprocess.run(
        [sys.executable, "-m", "manyhands", "site", "--output", str(folder)],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=root,
    )


@pytest.fixture
def opened(site, page):
    """Return a function that opens a page of the site.

    At the end no request has left the disk, and no script has failed.
    """
    asked, failed = [], []
    page.set_default_timeout(120_000)  # a busy machine
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.on("console", lambda said: said.type in ("error", "warning") and failed.append(said.text))

    def open_page(name, scheme="light", width=1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{site.as_uri()}/{name}")
        page.wait_for_function("document.documentElement.dataset.theme")
        return page

    yield open_page
    page.evaluate("localStorage.clear()")
    assert [
        address for address in asked if not address.startswith((site.as_uri(), "data:", "blob:"))
    ] == []
    assert asked and failed == []


class Page(HTMLParser):
    """The anchors and the links of a page, and the pictures."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.fetched, self.pictures, self.text = (
            set(),
            set(),
            set(),
            [],
            [],
        )
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors |= {named[name] for name in ("id", "name") if named.get(name)}
        if tag == "a" and named.get("href"):
            self.links.add(named["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.fetched |= {named[name] for name in ("href", "src") if named.get(name)}
        if tag == "img":
            self.pictures.append(named)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def pages(site):
    """{path: Page} of all pages but the decks, which are their own."""
    return {
        path: Page(path)
        for path in sorted(site.rglob("*.html"))
        if "built" not in path.parts and "_static" not in path.parts
    }


def test_every_unit_has_its_tutorial_lab_decks_and_download(site, pages):
    for unit in THERE:
        for name in (
            f"notebooks/{unit.name}.html",
            f"labs/{unit.name}/{unit.name}.html",
            f"_sources/notebooks/{unit.name}.ipynb",
            f"slides/built/{unit.name}.html",
            f"slides/built/{unit.name}.pdf",
        ):
            assert (site / name).is_file(), name
        with zipfile.ZipFile(site / f"downloads/{unit.name}.zip") as archive:
            assert f"{unit.name}/{unit.name}.ipynb" in archive.namelist()
    assert len(pages) > 2 * len(THERE) + 10
    assert sum(path.stat().st_size for path in site.rglob("*")) < 60e6


def test_every_link_resolves(site, pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links | page.fetched:
            parts = urlsplit(link)
            if parts.scheme in ("https", "http", "mailto", "data"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)} -> {link}")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                wrong.append(f"{path.relative_to(site)} -> {link}: no such anchor")
    assert wrong == []


def test_nothing_that_a_page_shows_or_runs_lies_on_another_host(pages):
    assert [
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in page.fetched
        if re.match(r"\w+:|//", link) and not link.startswith("data:")
    ] == []


def solutions():
    """(unit, text) of every answer in solutions/, without white space at the ends of lines."""
    for unit in THERE:
        notebook = json.loads((ROOT / f"solutions/{unit.name}/{unit.name}.ipynb").read_text())
        for cell in notebook["cells"]:
            for answer in re.findall(
                r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", "".join(cell["source"]), re.DOTALL
            ):
                yield unit.name, flat(answer)


def flat(text):
    return re.sub(r"\s+", " ", text).strip()


def cells_of(text):
    """All that stands in the cells of a notebook."""
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def texts_of(site, pages):
    """Yield (name, text) of all that a reader can read or download.

    Pages, notebooks, scripts, the search index.
    """
    for path, page in pages.items():
        yield str(path.relative_to(site)), flat("".join(page.text))
    for path in site.rglob("*"):
        if path.suffix in (".ipynb", ".py", ".md", ".txt", ".js"):
            text = path.read_text(encoding="utf-8")
            if path.name == "search_texts.js":
                text = "\n".join(json.loads(text.partition(" = ")[2].rstrip(";\n")).values())
            yield (
                str(path.relative_to(site)),
                flat(cells_of(text) if path.suffix == ".ipynb" else text),
            )
        elif path.suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
                for name in archive.namelist():
                    text = archive.read(name).decode()
                    yield (
                        f"{path.name}/{name}",
                        flat(cells_of(text) if name.endswith(".ipynb") else text),
                    )


def test_no_text_of_a_solution_is_in_it(site, pages):
    """Answers of 60 characters or more; shorter ones (`return x`) are nobody's.

    What a tutorial itself teaches by the same lines is no leak.
    """
    taught = [flat(cells_of(path.read_text())) for path in ROOT.glob("notebooks/*.ipynb")]
    taught += [flat(path.read_text()) for path in ROOT.glob("notebooks/scripts/*")]
    answers = {
        (unit, text)
        for unit, text in solutions()
        if len(text) >= 60 and not any(text in lesson for lesson in taught)
    }
    assert len(answers) > 3 * len(THERE)
    everything = list(texts_of(site, pages))
    found = [
        f"{unit} in {name}: {answer[:60]}"
        for unit, answer in answers
        for name, text in everything
        if answer in text
    ]
    assert found == []
    assert not list(site.rglob("*solutions*"))


def test_the_comparison_would_find_an_answer(site, pages):
    """It finds the code that is meant to be there.

    That is the longest stub of a lab, on its page, in its downloads, and in the texts of the
    search.
    """
    cells = [
        cell
        for cell in json.loads((ROOT / "labs/06_ddp/06_ddp.ipynb").read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    stub = flat(max(("".join(cell["source"]) for cell in cells), key=len))
    assert {name for name, text in texts_of(site, pages) if stub in text} >= {
        "labs/06_ddp/06_ddp.html",
        "_sources/labs/06_ddp/06_ddp.ipynb",
        "06_ddp.zip/06_ddp/06_ddp.ipynb",
        "_static/search_texts.js",
    }


def test_pictures_say_what_they_show(site, pages):
    shown = {
        path: [picture for picture in page.pictures if "_images" in picture["src"]]
        for path, page in pages.items()
    }
    assert sum(map(len, shown.values())) > 2 * len(THERE)
    for path, pictures in shown.items():
        for picture in pictures:
            alt, file = picture.get("alt") or "", (path.parent / picture["src"]).resolve()
            assert len(alt) > 10 and Path(alt).suffix not in (
                ".svg",
                ".png",
            ), f"{path.name}: {alt!r}"
            assert file.suffix != ".svg" or alt == title_of(file)


def test_the_side_bar_has_all_units_in_order_and_tells_which_are_coming(pages, site):
    text = (site / "index.html").read_text()
    bar = text[text.index('<nav class="units-nav"') :].partition("</nav>")[0]
    assert re.findall(r'"number">(\d\d)<', bar) == [unit.number for unit in units(ROOT)]
    assert len(re.findall("<a ", bar)) == len(THERE) and bar.count("coming</em>") == len(
        units(ROOT)
    ) - len(THERE)
    assert bar.count('<li class="one_day">') == len(paths()["one_day"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_page_shuts_nobody_out(opened, name, scheme):
    page = opened(name, scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    if name.startswith("search"):
        page.wait_for_selector("#search-results li a")
    # all else is the same in the dark
    assert shuts_out(page, ALL_RULES if scheme == "light" else ["color-contrast"]) == []


def test_axe_would_find_what_shuts_people_out(opened):
    page = opened("labs/index.html")
    page.evaluate(
        "document.querySelector('.bd-article').insertAdjacentHTML('beforeend', '<p "
        'style="color:#bbb;background:#fff">pale</p><img src="">\')'
    )
    assert {line.partition(":")[0] for line in shuts_out(page)} == {"color-contrast", "image-alt"}


@pytest.mark.parametrize("name", NARROW)
def test_a_phone_need_not_scroll_sideways(opened, name):
    page = opened(name, width=375)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize(
    ("name", "selector"),
    [
        ("notebooks/02_mirrored_strategy.html", ".cell_output img[src$='.svg']"),
        ("notebooks/00_preflight.html", ".cell_output img[src$='.svg']"),
        ("index.html", ".unit-card img"),
        ("index.html", ".hero img"),
    ],
)
def test_figures_follow_the_theme(opened, name, selector):
    from PIL import Image

    shown = {}
    for scheme in ("light", "dark"):
        figure = opened(name, scheme).locator(selector).first
        figure.scroll_into_view_if_needed()
        colours = Image.open(io.BytesIO(figure.screenshot())).convert("RGB").getcolors(1 << 20)
        shown[scheme] = [sum(colour) / 3 for _, colour in sorted(colours, reverse=True)]
    assert shown["light"][0] > 235 and shown["dark"][0] < 45  # the ground
    assert max(shown["dark"]) > 150  # and what is drawn on it can be seen


def test_a_moving_picture_can_be_stopped(opened):
    page = opened("README.html")
    button, picture, still = (
        page.locator("button.stop"),
        page.locator("article img[src$='.gif']"),
        page.locator("article canvas"),
    )
    button.click()
    assert (
        not picture.is_visible()
        and still.is_visible()
        and len(still.get_attribute("aria-label")) > 20
    )
    assert still.bounding_box()["width"] > 300
    button.click()
    assert picture.is_visible() and not still.is_visible()
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    page.wait_for_selector("text=Let the picture move")
    assert not picture.is_visible()
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize(
    "name",
    [
        "notebooks/06_ddp.html",
        "notebooks/14_pipeline.html",
        "labs/16_sharded_states/16_sharded_states.html",
        "docs/HUB.html",
    ],
)
def test_code_fits_the_column(opened, name):
    page = opened(name)
    wide = page.evaluate(
        "[...document.querySelectorAll('article div.highlight pre')].filter(one => one.scrollWidth "
        "> one.clientWidth).map(one => one.textContent)"
    )
    assert wide == []


def test_a_page_describes_itself_and_has_one_of_each(site, pages):
    for path in pages:
        head, _, body = path.read_text().partition("</head>")
        assert (
            head.count('name="viewport"') == 1
            and head.count("<title>") == 1
            and "preload" not in head
        ), path
        if path.name != "search.html":
            assert head.count('property="og:title"') == 1 and "og:image" not in head, path
            assert re.search(r'name="description" content="[^"]{20,}"', head), path
        assert not re.search("<th[^>]*>(<p></p>)?</th>", body), path
    assert "manyhands &#8212; manyhands" not in (site / "index.html").read_text()
    assert not list(site.rglob("*webpack*"))


def test_with_an_address_a_link_shows_a_picture():
    app = SimpleNamespace(
        config=SimpleNamespace(
            root_doc="index", project="manyhands", html_baseurl="https://example.org/course/"
        ),
        builder=SimpleNamespace(get_target_uri=lambda name: f"{name}.html"),
    )
    context = {"title": "A &amp; <b>B</b>"}
    heads.describe(
        app,
        "docs/X",
        "",
        context,
        nodes.paragraph("", 'Some words, "quoted" and long enough to be a description.'),
    )
    assert 'og:image" content="https://example.org/course/_static/card.png"' in context["metatags"]
    assert 'og:url" content="https://example.org/course/docs/X.html"' in context["metatags"]
    assert (
        'og:title" content="A &amp; B"' in context["metatags"]
        and "&quot;quoted&quot;" in context["metatags"]
    )


def test_the_list_of_labs_has_their_own_titles(opened):
    titles = opened("labs/index.html").locator("article td:nth-child(2) a").all_inner_texts()
    assert (
        len(titles) == len(THERE)
        and "nn.DataParallel, written by hand" in titles
        and "An all-reduce from send and recv" in titles
    )


@pytest.mark.parametrize(
    ("name", "selector"),
    [("notebooks/00_preflight.html", ".prediction-buttons .button"), ("index.html", ".button")],
)
def test_buttons_do_not_touch_on_a_phone(opened, name, selector):
    page = opened(name, width=390)
    boxes = page.locator(f"{selector} >> visible=true").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().toJSON())"
    )
    touching = [
        (a, b)
        for a, b in pairwise(boxes)
        if a["bottom"] + 4 > b["top"]
        and b["bottom"] + 4 > a["top"]
        and a["right"] + 4 > b["left"] > a["left"] - 4
    ]
    assert len(boxes) > 1 and touching == []


def test_formulas_are_set_without_a_network(opened):
    page = opened("notebooks/05_communication_costs.html")
    page.wait_for_selector("mjx-container svg")
    assert (
        page.locator("mjx-container").count() > 20
        and page.locator("mjx-merror, [data-mml-node=merror]").count() == 0
    )


def test_the_search_finds_a_word_from_the_disk_and_shows_where(opened):
    page = opened("search.html?q=straggler")
    page.wait_for_selector("#search-results li a")
    page.wait_for_selector("#search-results li p")
    results = page.locator("#search-results li").all_inner_texts()
    assert any("Glossary" in text for text in results) and any(
        "straggler" in text.lower().partition("\n")[2] for text in results
    )
    with page.expect_navigation(wait_until="domcontentloaded"):
        page.click("#search-results li a >> nth=0")
    # to be seen, also where it is in a fold
    page.wait_for_selector("article .highlighted >> nth=0")
    assert "straggler" in page.inner_text("article").lower()


@pytest.mark.parametrize("typed", ["all-reduce", "all reduce", "all_reduce", "All-Reduce"])
def test_the_search_finds_the_glossary_and_the_unit_of_a_term_first(opened, typed):
    page = opened(f"search.html?q={typed}")
    page.wait_for_selector("#search-results li:nth-child(2) a")
    first = [
        page.locator("#search-results li a")
        .nth(n)
        .get_attribute("href")
        .partition("?")[0]
        .partition("#")[0]
        for n in range(2)
    ]
    assert sorted(first) == ["docs/GLOSSARY.html", "notebooks/04_collectives.html"]
    page.wait_for_selector("#search-results li:nth-child(4) p.context")
    shown = page.locator("#search-results li a").evaluate_all(
        "all => all.map(one => one.textContent + one.href.replace(/[?].*?(#|$)/, '$1'))"
    )
    assert len(set(shown)) == len(shown), "a result twice"
    assert "<" not in page.inner_text("#search-results li:has(a[href*=GLOSSARY]) p.context")


def test_a_term_of_the_glossary_is_shown_on_hover_and_on_focus(opened):
    page = opened("notebooks/00_preflight.html")
    term, entry = (
        page.locator("article a.term", has_text="process group"),
        page.locator(".glossary-entry"),
    )
    assert not entry.is_visible()
    term.hover()
    assert "process group: " in entry.inner_text() and term.get_attribute(
        "aria-describedby"
    ) == entry.get_attribute("id")
    page.keyboard.press("Escape")
    assert not entry.is_visible() and term.get_attribute("aria-describedby") is None
    page.locator("article a.term", has_text="all-reduce").focus()
    assert "all-reduce: a collective" in entry.inner_text()
    box, link = (
        entry.bounding_box(),
        term.page.locator("article a.term", has_text="all-reduce").first.bounding_box(),
    )
    assert (
        box["x"] >= 0
        and box["x"] + box["width"] <= 1280
        and 0 < box["y"] - link["y"] - link["height"] < 10
    )
    assert shuts_out(page, [*ALL_RULES, "best-practice"], ("moderate", "serious", "critical")) == []
    term.click()
    page.wait_for_selector("#process-group")
    assert page.url.endswith("docs/GLOSSARY.html#process-group")


def test_every_term_of_the_glossary_has_an_address(site, pages):
    terms = glossary.entries((ROOT / "docs/GLOSSARY.md").read_text())
    assert (
        len(terms) > 100
        and {glossary.anchor(term) for term in terms} <= pages[site / "docs/GLOSSARY.html"].anchors
    )


def test_the_theme_is_switched_by_a_button(opened):
    page = opened("docs/GLOSSARY.html", "light")
    page.click("button.theme-switch-button >> visible=true")
    page.click("button[data-mode=dark], [data-mode=dark] >> visible=true")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_cheat_sheet_is_one_sheet(site):
    paper = (site / "docs/CHEAT_SHEET.pdf").read_bytes()
    assert paper.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", paper)) == 1
    [box] = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert [round(float(side)) for side in box] == [842, 595]  # A4, wide


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    done = run_site(ROOT, tmp_path)
    assert (
        done.returncode == 2
        and "nothing was written" in done.stderr
        and [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    )


# ------------------------------------------------------------ predictions, and the figure of unit
# 00


def test_a_prediction_is_locked_before_its_output_is_seen_and_is_kept(opened):
    page = opened("notebooks/00_preflight.html")
    form, outcome = (
        page.locator("form[data-name='00-whose-x']"),
        page.locator("[data-settles='00-whose-x']"),
    )
    hidden = page.locator(".until-predicted")
    before = hidden.count()
    form.locator("button[type=submit]").click()
    assert "Choose one of the answers first" in form.inner_text() and hidden.count() == before > 0
    form.get_by_label("0, 1, 4 and 9").check()
    form.locator("button[type=submit]").click()
    assert hidden.count() < before and form.locator("input").first.is_disabled()
    assert "You predicted: 0, 1, 4 and 9. The run: 100. ✗" in outcome.inner_text()
    page.reload()
    assert (
        "You predicted: 0, 1, 4 and 9" in outcome.inner_text()
        and "1 of 5 made, 0 right" in page.inner_text(".prediction-count")
    )
    page.goto(page.url.replace("00_preflight", "index"))
    assert "1 prediction, 0 right" in page.inner_text(".unit-card >> nth=0")
    lines = page.locator(".unit-card >> nth=0 >> p").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().left)"
    )
    assert len(set(lines)) == 1
    page.click("text=Forget them")
    page.go_back()
    assert form.locator("button[type=submit]").is_visible() and hidden.count() == before


def test_two_tabs_keep_the_guesses_of_both(opened, chromium):
    page = opened("notebooks/00_preflight.html")
    other = chromium.new_page()
    other.goto(page.url)
    for tab, name in ((page, "00-whose-x"), (other, "00-barrier")):
        form = tab.locator(f"form[data-name='{name}']")
        form.locator("input").first.check()
        form.locator("button[type=submit]").click()
    other.close()
    page.reload()
    assert "2 of 5 made" in page.inner_text(".prediction-count")


def test_a_number_is_read_as_in_the_notebooks_and_one_can_go_on_without(opened):
    page = opened("notebooks/06_ddp.html")
    form = page.locator("form[data-name='06-messages']")
    for typed in ("", "three", "1/0", "1/"):
        form.locator("input").fill(typed)
        form.locator("button[type=submit]").click()
        assert "Type a number" in form.inner_text()
    form.locator("input").fill("6/2")
    form.locator("button[type=submit]").click()
    assert "You predicted: 3 messages. The run: 3 messages. ✓ Right." in page.inner_text(
        "[data-settles='06-messages']"
    )
    others = page.locator("form.prediction button[type=button] >> visible=true")
    while others.count():
        others.first.click()
    assert page.locator(".until-predicted").count() == 0


def test_a_browser_that_keeps_rubbish_or_nothing_still_asks(opened):
    for rubbish in ("{", "[1]", "3", '{"00-whose-x": 1}'):
        page = opened("notebooks/00_preflight.html")
        page.evaluate("rubbish => localStorage.setItem('manyhands-predictions', rubbish)", rubbish)
        page.reload()
        assert page.locator("form[data-name='00-whose-x'] button[type=submit]").is_visible()


def test_the_search_shows_what_it_found_in_a_hidden_output(opened):
    page = opened("notebooks/00_preflight.html?highlight=nonsense")
    assert page.locator(".until-predicted").count() > 0
    page = opened("notebooks/00_preflight.html?highlight=keepsake")
    page.wait_for_selector("article .highlighted >> nth=0")


GRAPH = {  # of rank 0 to 3 the first and the second call -> what the report must say
    (("barrier", ""), ("barrier", ""), ("", ""), ("barrier", "")): [
        "ranks 0, 1, 3 wait",
        "0 -> 2, 1 -> 2, 3 -> 2",
        "rank 2 did not join the barrier",
    ],
    (("recv 3", "send 1"), ("recv 0", "send 2"), ("recv 1", "send 3"), ("recv 2", "send 0")): [
        "0 -> 3 -> 2 -> 1 -> 0",
        "receive before it sends",
    ],
    (("send 1", "recv 3"), ("recv 0", "send 2"), ("recv 1", "send 3"), ("recv 2", "send 0")): [
        "Every rank has finished."
    ],
    (("barrier", "all_reduce"), ("all_reduce", "barrier"), ("barrier", ""), ("barrier", "")): [
        "different orders: barrier on ranks 0, 2, 3, all_reduce on rank 1"
    ],
    (("send 1", ""), ("", ""), ("", ""), ("", "")): [
        "rank 0 is waiting for a rank that never arrives",
        "rank 0 sends to rank 1, which never received it",
    ],
    (("barrier", ""), ("recv 0", "barrier"), ("barrier", ""), ("barrier", "")): [
        "1 -> 0",
        "in a circle: 0 -> 1 -> 0",
    ],
    (("barrier", "barrier"), ("barrier", ""), ("barrier", "barrier"), ("barrier", "barrier")): [
        "rank 1 did not join the barrier"
    ],
    ((("", ""),) * 4): ["Every rank has finished."],
}


def test_the_wait_for_graph_follows_what_the_ranks_call(opened, screenshots):
    page = opened("notebooks/00_preflight.html#try-it-here")
    for calls, words in GRAPH.items():
        for number, call in enumerate(call for rank in calls for call in rank):
            page.locator(".wait-for-graph select").nth(number).select_option(call)
        text = page.inner_text(".wait-for-graph pre")
        assert [word for word in words if word not in text] == [], text
        arrows = re.findall(
            r"\d -> \d", text.partition("Who waits for whom:")[2].partition("\n")[0]
        )
        assert page.locator(".wait-for-graph path.arrow").count() == len(arrows)
    page.click("text=Every rank receives first")
    assert page.locator(
        ".wait-for-graph path.arrow"
    ).count() == 4 and "Rank 0 waits for rank 3" in page.get_attribute(
        ".wait-for-graph svg", "aria-label"
    )
    page.locator(".wait-for-graph").screenshot(path=screenshots / "wait-for-graph.png")
