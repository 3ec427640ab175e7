"""What a page says of itself, and what is taken out of it."""

from docutils import nodes

from manyhands.website import heads

PAGE = """<head><meta name="viewport" content="a" /><meta name="viewport" content="b" />
<link rel="preload" as="script" href="x.js" /><link rel="stylesheet" href="x.css" />
<meta name="viewport" content="c"/></head><body><th class="head"><p></p></th><th class="head text-left"></th><th class="head"><p>a</p></th></body>"""


def test_what_nobody_needs_is_taken_out_and_nothing_else():
    assert (
        heads.tidied(PAGE)
        == '<head><meta name="viewport" content="a" /><link rel="stylesheet" href="x.css" '
        '/></head><body><td class="head"></td><td class="head text-left"></td><th '
        'class="head"><p>a</p></th></body>'
    )
    assert heads.tidied("") == "" and heads.tidied("no head") == "no head"


def test_the_folder_loses_the_stray_page_and_keeps_decks_as_they_are(tmp_path):
    for name in ("index.html", "slides/built/00.html", *heads.STRAY):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PAGE)
    heads.tidy(tmp_path)
    assert (
        "preload" not in (tmp_path / "index.html").read_text()
        and (tmp_path / "slides/built/00.html").read_text() == PAGE
    )
    assert not (tmp_path / heads.STRAY[0]).exists()


def test_a_description_is_the_first_sentence_and_is_cut_at_a_word():
    words = "a long word, " * 40
    page = nodes.section(
        "",
        nodes.paragraph("", "Short."),
        nodes.paragraph("", words),
        nodes.paragraph("", "Another paragraph that is long enough."),
    )
    assert heads.description(page) == words[: heads.LONGEST].rsplit(" ", 1)[0] + " ..."
    html = nodes.section(
        "",
        nodes.raw(
            "", '<p class="lead">A course &amp;\nmore, with <b>bold</b> words.</p>', format="html"
        ),
    )
    assert (
        heads.description(html) == "A course &amp; more, with bold words."
        and heads.description(nodes.section()) == ""
    )
