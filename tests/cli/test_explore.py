"""`starshl explore`: the address that it prints and opens."""

import pytest


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8123/"),
        ("::1", "http://[::1]:8123/"),
        ("0.0.0.0", "http://127.0.0.1:8123/"),
        ("::", "http://[::1]:8123/"),
    ],
)
def test_the_address_is_one_that_a_browser_on_this_machine_can_open(host, address, starshl, monkeypatch):
    monkeypatch.setattr("starshl.cli.serve.run_service", lambda *_, at_start, **__: at_start(8123))
    result = starshl("explore", "items", "--host", host, "--no-browser")
    assert result.stdout == f"{address} shows items. Ctrl+C stops it.\n"
