"""``starshl serve`` as a process: killed in the middle of writes, told to stop, or refused."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress

import httpx
import pytest

from starshl import Collection
from starshl.client import Client, Retries

pytestmark = pytest.mark.server

SERVE = [sys.executable, "-m", "starshl.cli.main", "serve"]


class Served:
    """A serving process and its port."""

    def __init__(self, *words, port=0, **environment):
        self.process = subprocess.Popen(
            [*SERVE, *map(str, words), "--port", str(port)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            if '"serving"' in line:
                break
        assert '"serving"' in "".join(self.lines[-1:]), "".join(self.lines)
        self.port = json.loads(self.lines[-1])["port"]
        self._reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self._reader.start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(120)
        self._reader.join()
        self.process.stderr.close()


def write_until_it_fails(address, rows, acknowledged, begun):
    """Add items with keys, one request at a time; note the batches that were sent and those that were acknowledged."""
    with httpx.Client(base_url=address, timeout=120) as http:
        while True:
            key = uuid.uuid4().hex
            body = {
                "items": [{"vector": rows[0].tolist(), "metadata": {"key": key, "part": part}} for part in range(3)]
            }
            begun.append((key, body))
            try:
                response = http.post("/api/v1/collections/things/items", json=body, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                return
            if response.status_code != 201:
                return
            acknowledged[key] = response.json()["ids"]


def wait_for_writes(served, writers, acknowledged, n_wanted):
    """Wait until some writes are acknowledged; fail if a writer ends before, or if that takes two minutes."""
    end = time.monotonic() + 120
    while len(acknowledged) < n_wanted:
        if time.monotonic() > end or not all(writer.is_alive() for writer in writers):
            served.end(signal.SIGKILL)
            pytest.fail(f"{len(acknowledged)} of {n_wanted} writes were acknowledged:\n" + "".join(served.lines))
        time.sleep(0.01)


def stored_by_key(folder):
    with Collection(folder, read_only=True) as collection:
        collection.verify()
        found = {}
        for item in collection.get(collection.ids[60:]):
            found.setdefault(item.metadata["key"], []).append(item.id)
    return found


def kill_while_writing(folder, rows, running, *, pause):
    """Kill a service during writes, start it again, send the last batches again, and compare."""
    served = Served(folder)
    acknowledged, begun = {}, []
    writers = [
        threading.Thread(target=write_until_it_fails, args=(served.address, rows, acknowledged, begun))
        for _ in range(3)
    ]
    for writer in writers:
        writer.start()
    wait_for_writes(served, writers, acknowledged, 5)
    writers[0].join(pause)
    served.end(signal.SIGKILL)
    for writer in writers:
        writer.join()
    stored = stored_by_key(folder)
    for key, ids in acknowledged.items():
        assert stored.get(key) == ids
    assert all(len(ids) == 3 for ids in stored.values())
    again = running(folder)
    for key, body in begun:
        answer = again("POST", "/collections/things/items", json=body, headers={"Idempotency-Key": key}).json()
        assert answer["repeated"] == (key in stored)
        assert stored.setdefault(key, answer["ids"]) == answer["ids"]
    assert stored_by_key(folder) == stored


def test_acknowledged_writes_survive_a_kill_and_a_retry_stores_nothing_twice(folder, rows, running):
    kill_while_writing(folder, rows, running, pause=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_acknowledged_writes_survive_many_kills(folder, rows, running, number):
    kill_while_writing(folder, rows, running, pause=0.02 * number)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_a_kill_in_the_middle_of_snapshots_and_restores_leaves_a_whole_collection(folder, running, number):
    served = Served(folder)

    def snapshot():
        with (
            httpx.Client(base_url=f"{served.address}/api/v1/collections/things", timeout=60) as http,
            suppress(httpx.TransportError),
        ):
            for name in range(1000):
                http.post("/snapshots", json={"name": str(name)})
                http.post(f"/snapshots/{name}/restore")

    thread = threading.Thread(target=snapshot)
    thread.start()
    thread.join(1.0 + 0.13 * number)
    served.end(signal.SIGKILL)
    thread.join()
    again = running(folder)
    assert again("GET", "/collections/things").json()["n_items"] == 60
    for info in again("GET", "/collections/things/snapshots").json()["snapshots"]:
        assert again("POST", f"/collections/things/snapshots/{info['name']}/restore").json() == {"n_items": 60}
    assert {path.name for path in folder.parent.iterdir()} == {"things", "things.snapshots"}


def test_a_service_that_is_told_to_stop_finishes_what_it_has_begun(folder, rows):
    token = "token-" + "t" * 20
    served = Served(folder, STARSHL_WRITE_TOKEN=token)
    acknowledged = []

    def write():
        client = Client(served.address, token=token, timeout=120, retries=Retries(attempts=1))
        try:
            while True:
                acknowledged.extend(client.collection("things").add(rows[:2]).ids)
        except Exception:
            client.close()

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    wait_for_writes(served, writers, acknowledged, 10)
    served.end(signal.SIGTERM)
    assert served.process.returncode == 0
    for writer in writers:
        writer.join()
    with Collection(folder) as collection:
        assert set(acknowledged) <= set(collection.ids.tolist())
    lines = [json.loads(line) for line in served.lines]
    requests = [line for line in lines if line["message"] == "request"]
    assert {line["path"] for line in requests} == {"/api/v1/collections/things/items"}
    assert not any(token in line for line in served.lines)
    assert not (folder / "items.sqlite-wal").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "0.0.0.0"], "there are no tokens"),
        (["--tokens", "missing"], "No such file"),
        (["nowhere"], "no folder 'nowhere'"),
        ([], "Name the folder"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_sentence(starshl_words, folder, words, message):
    result = starshl_words("serve", *([folder] if words and words[0].startswith("--") else []), *words, "--port", 0)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_collection_that_another_process_writes_to_is_refused(starshl_words, folder):
    with Collection(folder):
        result = starshl_words("serve", folder, "--port", 0)
    assert (result.exit_code, "Another process is writing" in result.stderr) == (2, True)


def test_a_missing_extra_is_named_with_the_line_that_installs_it(starshl_words, folder, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("starshl.service.http")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = starshl_words("serve", folder, "--port", 0)
    assert (result.exit_code, "pip install 'starshl[serve]'" in result.stderr) == (2, True)


@pytest.fixture
def starshl_words():
    from typer.testing import CliRunner

    from starshl.cli.main import app

    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])
