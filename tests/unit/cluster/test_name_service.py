"""Warnings of torch's C++ are left out where no name service answers, and only there."""

import socket
import time

import pytest

from manyhands.cluster.host import name_service
from manyhands.cluster.launch.command_lines import base_env


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    monkeypatch.delenv(name_service.LEVEL, raising=False)
    name_service._answers.cache_clear()
    yield
    name_service._answers.cache_clear()


def no_service(*_):
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


def slow(*_):
    time.sleep(2)


def test_a_service_that_answers_changes_nothing(monkeypatch):
    monkeypatch.setattr(socket, "getnameinfo", lambda address, flags: (address[0], "0"))
    assert name_service.without_warnings() == {} and name_service.LEVEL not in base_env(None)


@pytest.mark.parametrize("answer", [no_service, slow])
def test_without_one_ranks_say_only_errors_and_it_is_asked_once(monkeypatch, answer):
    asked = []
    monkeypatch.setattr(name_service, "ANSWER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(socket, "getnameinfo", lambda *of: asked.append(of) or answer(*of))
    assert name_service.without_warnings() == {name_service.LEVEL: "ERROR"}
    assert base_env(None)[name_service.LEVEL] == "ERROR" and len(asked) == 1


def test_who_has_said_what_to_show_is_shown_it(monkeypatch):
    monkeypatch.setattr(socket, "getnameinfo", no_service)
    monkeypatch.setenv(name_service.LEVEL, "INFO")
    assert name_service.without_warnings() == {} and base_env(None)[name_service.LEVEL] == "INFO"
    assert base_env({name_service.LEVEL: "WARNING"})[name_service.LEVEL] == "WARNING"
