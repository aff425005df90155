"""Metrics are text that Prometheus reads, at one address, without anything else behind it."""

import contextlib
import socket
import threading
import urllib.error
import urllib.request

import pytest

from common.errors import InputError
from common.service.metrics import CONTENT_TYPE, Sample, metrics_server, render, serving_metrics

CALLS = [
    Sample(name="calls_total", help="Calls.", kind="counter", value=3, labels={"method": "A"}),
    Sample(name="age_seconds", help="Age.", kind="gauge", value=0.5),
    Sample(name="calls_total", help="Calls.", kind="counter", value=4, labels={"method": 'a"\\\n'}),
]
TEXT = r"""# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{method="A"} 3
calls_total{method="a\"\\\n"} 4
# HELP age_seconds Age.
# TYPE age_seconds gauge
age_seconds 0.5
"""


def test_samples_of_one_name_stand_together_under_their_help():
    assert render(CALLS) == TEXT


def test_only_the_one_path_answers():
    with metrics_server("127.0.0.1:0", lambda: CALLS).running() as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert answer.read().decode() == TEXT
        with pytest.raises(urllib.error.HTTPError, match="404") as missing:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)
        missing.value.close()


@pytest.mark.parametrize("listen", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "nowhere..:1"])
def test_an_address_that_cannot_be_used_is_said(listen):
    with pytest.raises(InputError, match="cannot listen"):
        metrics_server(listen, list)


@pytest.mark.parametrize(("listen", "served"), [("", False), ("127.0.0.1:0", True)])
def test_without_an_address_there_are_none(listen, served):
    before = threading.active_count()
    with serving_metrics(listen, list):
        assert (threading.active_count() > before) == served


def test_trouble_is_an_answer_without_figures_and_a_line_in_the_log(caplog, capsys):
    def collect():
        raise InputError("keys/curator.pem: cannot be read")

    with metrics_server("127.0.0.1:0", collect).running() as port:
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20)
        refused.value.close()
    assert "no metrics: keys/curator.pem: cannot be read" in caplog.text
    assert "Traceback" not in capsys.readouterr().err


def test_a_defect_is_an_answer_without_figures_and_a_line_in_the_log(caplog, capsys):
    def collect():
        raise BrokenPipeError

    with metrics_server("127.0.0.1:0", collect).running() as port:
        with pytest.raises(urllib.error.HTTPError, match="500") as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20)
        refused.value.close()
    assert "GET '/metrics' failed" in caplog.text
    assert "Traceback" not in capsys.readouterr().err


def test_slow_connections_do_not_keep_the_monitoring_out():
    with (
        metrics_server("127.0.0.1:0", lambda: CALLS).running() as port,
        contextlib.ExitStack() as held,
    ):
        lines = [
            held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
            for _ in range(30)
        ]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
            assert answer.read().decode() == TEXT
        assert lines[0].recv(1) == b"", "the oldest made room; each has a thread"
