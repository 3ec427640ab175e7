"""Lengths of what goes between a server and the hub.

Every letter may take twelve bytes in JSON, and no answer is lost for that.
"""

import os

import pytest

from hub_line import make_event, put_entry, record, with_hub
from manyhands.hackathon.event.event import Event
from manyhands.hub.board import service as service_module
from manyhands.hub.board.hub_event import NAME

TEXTS = {
    "Japanese": "行列の大きさが合いません。",
    "emoji": "🚀👩‍👩‍👧",
    "combining": "é̂̃ä̱",
    "surrogates": "\ud800\udfff x",
    "ASCII": "sizes do not match. ",
    "controls": "\x01\x02\x1b[31m",
    "six bytes for one": "\x01",
}


@pytest.fixture(autouse=True)
def many(monkeypatch):
    monkeypatch.setattr(service_module, "AT_ONCE", 10**6)
    # no machine is cut off here, and it takes its time
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.mark.parametrize("kind", TEXTS)
def test_a_status_with_any_letters_comes_whole_or_says_what_is_left_out(
    tmp_path, monkeypatch, capfd, kind
):
    """As many entries as a team may have in an event.

    Each has the longest error text that the judge keeps.
    """
    make_event(tmp_path, an_hour=100)
    event, text = Event(tmp_path / NAME), (TEXTS[kind] * 500)[:500]
    for number in range(1, 31):
        event.submit("Ring", "slow_links", str(number))
        event.settle(event.take().number, record(text))
        if number not in (1, 5, 30):
            continue
        assert with_hub(tmp_path, monkeypatch, lambda hack, service: hack("status")) == 0
        reply = capfd.readouterr().out
        assert f"Entry {number}, slow_links: " in reply and reply.count("Entry") >= min(number, 5)
        assert (reply.count("\nEntry") + reply.startswith("Entry") == number) != reply.startswith(
            "("
        )


@pytest.mark.parametrize("kind", TEXTS)
def test_submit_and_withdraw_answer_whatever_the_entry_is_written_in(
    tmp_path, monkeypatch, capfd, kind
):
    """Up to the longest entry; what is no UTF-8 is refused with a sentence."""
    make_event(tmp_path, team="行列の演算を分散させる人たち🚀")
    piece = TEXTS[kind].encode(errors="surrogatepass")
    sources = [b"# " + piece, b"# " + piece * ((20_000 - 2) // len(piece))]

    def use(hack, service):
        codes = []
        for source in sources:
            codes += [
                hack("submit", put_entry(tmp_path / "entry", source)),
                hack("withdraw", len(codes) // 2 + 1),
            ]
        return codes

    codes, output = with_hub(tmp_path, monkeypatch, use), capfd.readouterr()
    assert "No hub answers" not in output.err
    if kind == "surrogates":
        assert codes == [2, 2, 2, 2] and output.err.count("is not text in UTF-8") == 2
    else:
        assert codes == [0, 0, 0, 0], output.err
        assert "Entry 2 of 行列の演算を分散させる人たち🚀 is withdrawn." in output.out


def test_a_message_that_is_no_text_is_answered_with_a_sentence(tmp_path):
    make_event(tmp_path)
    service = service_module.Service(tmp_path)
    ann = service.people.of_name("ann")
    assert service.take(ann, '{"hack": "submit", "values": ["slow_links", "\\ud800"]}') == {
        "error": "entry.py is not text in UTF-8."
    }
    for line in (
        '{"hack": "\\ud800", "values": []}',
        '{"hack": "withdraw", "values": ["\\ud800"]}',
        '{"prediction": "\\ud800"}',
        '{"unit": "\\ud800"}',
    ):
        assert service.take(ann, line)["error"]
