"""Clients get typed answers, and a write that is sent again is stored once."""

import asyncio
import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import httpx
import numpy as np
import pytest

from starshl import Collection, StarRidge
from starshl.client import (
    AsyncClient,
    Client,
    Retries,
    ServiceProblem,
    ServiceUnreachable,
)
from starshl.hashers.baselines import LSHash
from starshl.service import Service, create_app
from starshl.service.settings import READ, Settings, Token, Tokens

ROOT = Path(__file__).parents[2]
QUICK = Retries(attempts=4, first_wait=0.001)


class Lossy(httpx.AsyncBaseTransport):
    """Reaches an app; loses requests before, or answers after, the app has seen them, as a list of words says."""

    def __init__(self, app, *faults):
        self.app, self.faults, self.sent = httpx.ASGITransport(app), list(faults), []

    async def handle_async_request(self, request):
        self.sent.append((request.method, request.headers.get("idempotency-key")))
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise httpx.ConnectError("lost")
        if fault.isdigit():
            return httpx.Response(int(fault), headers={"Retry-After": "0"}, json={"detail": "try again"})
        response = await self.app.handle_async_request(request)
        if fault == "after":
            raise httpx.ReadError("lost")
        return response


class Blocking(httpx.BaseTransport):
    """The same for a client that waits."""

    def __init__(self, transport):
        self.transport, self.loop = transport, asyncio.new_event_loop()

    def handle_request(self, request):
        # A file that is read by a thread cannot be read by a coroutine.
        whole = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())

        async def send():
            response = await self.transport.handle_async_request(whole)
            return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

        return self.loop.run_until_complete(send())

    def close(self):
        self.loop.close()


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((20, 4))


@pytest.fixture
def app(tmp_path, rows):
    with Collection.create(tmp_path / "things", LSHash(16, random_state=0).fit(rows), vectors="int8") as collection:
        collection.add(rows, labels=np.arange(20) % 2, metadata=[{"n": n} for n in range(20)])
    made = create_app(lambda observer: Service([tmp_path / "things"], observer=observer))
    yield made
    made.state.service.close()


@pytest.fixture
def things(app):
    with Client("http://localhost", transport=Blocking(Lossy(app)), retries=QUICK) as client:
        yield client.collection("things")


def test_a_client_does_what_a_collection_does(things, rows):
    assert (things.info().n_items, things.info().n_bits) == (20, 16)
    (found,) = things.search(rows[:1], k=2, labels=[0], explain=True)
    assert (found.hits[0].id, found.hits[0].distance, found.hits[0].metadata) == (0, 0, {"n": 0})
    assert "differs from the query in 0 of 16 bits" in found.hits[0].explanation.text
    written = things.add(rows[:2], labels=np.array([1, 0]), metadata=[{}, {"x": 1}], references=["a", None])
    assert (written.ids, written.repeated) == ([20, 21], False)
    things.upsert(rows[2:3], ids=[20], labels=[None])
    things.update([21], [{"y": 2}])
    things.set_labels([20, 21], [1, None])
    one, two = things.get([20, 21], vectors=True)
    assert (one.label, two.label, two.metadata) == (1, None, {"y": 2})
    assert things.set_labels([20, 19], None).n_items == 2
    assert [item.label for item in things.get([19, 20])] == [None, None]
    assert one.vector == pytest.approx(rows[2], abs=0.03)
    page = things.list_items(after=18)
    assert ([item.id for item in page.items], page.next) == ([19, 20, 21], None)
    assert len(things.encode(rows[:3])) == 3
    assert [hit.id for hit in things.search(items=[21], k=2)[0].hits] == [1, 21]
    assert things.remove([20, 21]).ids == [20, 21]
    made = things.make_snapshot("first")
    assert things.snapshots() == [made]
    things.remove([0])
    assert things.restore("first") == 20
    things.delete_snapshot("first")
    assert (things.snapshots(), things.jobs()) == ([], [])


def test_a_client_finds_what_the_collection_finds(things, app, rows):
    with app.state.service.searcher("things").opened() as collection:
        for options in ({}, {"explain": True, "labels": np.array([1])}, {"radius": 6, "among": range(9)}):
            assert things.search(rows[:3], 4, **options) == collection.search(rows[:3], 4, **options)
            assert things.search(items=[2, 5], **options) == collection.search(items=[2, 5], **options)
        assert things.get([2, 5], vectors=True) == collection.get([2, 5], vectors=True)


def test_least_probabilities_are_sent_and_probabilities_arrive(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(3, 4))[y] + rng.normal(size=(90, 4))
    with Collection.create(tmp_path / "likely", StarRidge(12, random_state=0).fit(X, y)) as likely:
        likely.add(X)
        expected = likely.search(X[:4], 50, min_probability=0.5)
        assert 0 < len(expected[0].hits) < 50
    app = create_app(lambda observer: Service([tmp_path / "likely"], observer=observer))

    async def ask():
        async with AsyncClient("http://localhost", transport=Lossy(app), retries=QUICK) as client:
            return await client.collection("likely").search(X[:4], 50, min_probability=0.5)

    assert asyncio.run(ask()) == expected
    with Client("http://localhost", transport=Blocking(Lossy(app)), retries=QUICK) as client:
        answers = client.collection("likely").search(X[:4], 50, min_probability=0.5)
        assert client.collection("likely").info().hit_probabilities
    app.state.service.close()
    assert answers == expected
    assert min(hit.probability for found in answers for hit in found.hits) >= 0.5


def test_filters_list_count_recommend_and_remove(things, rows):
    things.declare_fields({"n": int, "shop": "str"})
    assert things.info().fields == {"n": "int", "shop": "str"}
    page = things.list_items(limit=2, where={"n": {">": 4}}, labels=np.array([1]))
    assert ([item.id for item in page.items], page.next) == ([5, 7], 7)
    assert (things.count(), things.count(labels=[0], where={"n": {"<": 4}}), things.count(among=[3, 99])) == (20, 2, 1)
    near, labeled = things.search_together([{"X": rows[:2], "k": 1}, {"items": [3], "k": 5, "labels": [0]}])
    assert [found.hits[0].id for found in near] == [0, 1]
    assert labeled == things.search(items=[3], k=5, labels=[0])
    hits = things.recommend([0, 1], [2], 3, labels=[0])
    assert len(hits) == 3
    assert not {hit.id for hit in hits} & {0, 1, 2}
    removed = things.remove_matching(where={"n": {">=": 15}})
    assert (removed.ids, removed.n_items, things.info().n_items) == ([15, 16, 17, 18, 19], 5, 15)


def test_guesses_are_made_found_accepted_rejected_and_restored(things):
    things.set_labels(list(range(10, 20)), None)
    assert things.guess_state().is_current is None
    assert things.wait(things.update_guesses().id, seconds=60).state == "done"
    state = things.guess_state()
    (label, _), *_ = state.counts
    assert (state.is_current, state.by, sum(n for _, n in state.counts)) == (True, "lesson", 10)
    page = things.list_items(limit=3, order="likeliest", guesses=[label]).items
    assert [item.guess.label for item in page] == [label] * 3
    ids = [item.id for item in page]
    before = things.count(labels=[label])
    assert things.accept_guesses(ids, [label] * 3).ids == ids
    assert things.count(labels=[label]) == before + 3
    assert things.undo_review().n_items == 3
    assert things.reject_guesses(ids).n_items == 3
    assert things.count(labels=[label]) == before
    hits = things.search(items=ids[:1], k=40)[0]
    assert any(hit.guess is not None for hit in hits)


def test_files_go_to_and_fro(things, rows, tmp_path):
    lines = [json.dumps({"vector": row.tolist(), "label": 1}) for row in rows[:5]]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    first = things.import_file(tmp_path / "items.jsonl")
    assert things.wait(first.id, seconds=60).result == {"stored": 5, "repeated": 0}
    again = things.import_file(tmp_path / "items.jsonl", key=first.key)
    assert things.wait(again.id, seconds=60).result == {"stored": 0, "repeated": 5}
    things.make_snapshot("first")
    things.save_snapshot("first", tmp_path / "copy.starsnap")
    assert things.upload_snapshot(tmp_path / "copy.starsnap").name == "copy"
    things.save_model(tmp_path / "model")
    assert things.wait(things.replace_model(tmp_path / "model").id, seconds=60).state == "done"
    with pytest.raises(ServiceProblem, match="no snapshot 'none'"):
        things.save_snapshot("none", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_files_go_to_and_fro_asynchronously(app, rows, tmp_path):
    async def use():
        async with AsyncClient("http://localhost", transport=Lossy(app), retries=QUICK) as client:
            things = client.collection("things")
            await things.make_snapshot("first")
            await things.save_snapshot("first", tmp_path / "copy.starsnap")
            assert (await things.upload_snapshot(tmp_path / "copy.starsnap", "second")).name == "second"
            (tmp_path / "items.jsonl").write_text(json.dumps({"vector": rows[0].tolist()}))
            job = await things.import_file(tmp_path / "items.jsonl")
            assert (await things.wait(job.id, seconds=60)).state == "done"
            with pytest.raises(ServiceProblem, match="no snapshot 'none'"):
                await things.save_snapshot("none", tmp_path / "none")

    asyncio.run(use())


def test_what_the_service_notes_is_a_warning_where_it_was_asked(things, rows):
    with pytest.warns(UserWarning, match=r"'n' is not declared.*declare_fields") as caught:
        things.search(rows[:1], where={"n": 3})
    assert __file__ in {warning.filename for warning in caught}
    with pytest.warns(UserWarning, match="'n' is not declared"):
        things.search_together([{"items": [1], "where": {"n": 3}}] * 2)


def test_problems_arrive_with_their_words(things, rows):
    with pytest.raises(ServiceProblem, match="not in the collection") as caught:
        things.get([999])
    assert (caught.value.status, caught.value.kind) == (404, "not-found")
    assert caught.value.request_id
    with pytest.raises(ServiceProblem, match="have 4") as caught:
        things.search(rows[:, :3])
    assert caught.value.status == 422
    with pytest.raises(ServiceProblem, match="Input should be") as caught:
        things.search(rows[:1], metric="other")
    assert caught.value.errors[0]["where"] == "body.metric"
    with pytest.raises(ServiceProblem, match="no such job"):
        things.job("none")


@pytest.mark.parametrize("faults", [["before"], ["after"], ["after", "before", "after"], ["503", "after"], ["429"]])
def test_a_write_whose_answer_was_lost_is_stored_once(app, rows, faults):
    transport = Lossy(app, *faults)
    with Client("http://localhost", transport=Blocking(transport), retries=QUICK) as client:
        things = client.collection("things")
        written = things.add(rows[:3])
        assert written.ids == [20, 21, 22]
        assert written.repeated == ("after" in faults)
        assert things.info().n_items == 23
    keys = {key for method, key in transport.sent if method == "POST"}
    assert len(keys) == 1
    assert len(transport.sent) == len(faults) + 2


def test_an_undo_whose_answer_was_lost_undoes_one_change_of_classes(app, rows):
    with Client("http://localhost", transport=Blocking(Lossy(app, "", "", "", "after")), retries=QUICK) as client:
        things = client.collection("things")
        things.add(rows[:2], labels=[91, 92])
        things.rename_class(91, 93)
        things.rename_class(92, 94)
        assert things.undo_class_change().undone
        assert [each.undone for each in things.class_changes()] == [False, True]


def test_two_equal_writes_are_two(things, rows):
    assert [things.add(rows[:1]).ids for _ in range(2)] == [[20], [21]]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_an_address_without_its_beginning_is_refused(kind):
    with pytest.raises(ValueError, match="must begin with http://"):
        kind("127.0.0.1:8000")


def test_after_the_last_attempt_the_error_arrives(app, rows):
    transport = Lossy(app, *["before"] * 10)
    with Client("http://localhost", transport=Blocking(transport), retries=QUICK) as client:
        with pytest.raises(ServiceUnreachable, match=r"localhost.* cannot be reached \(lost\)"):
            client.collection("things").add(rows[:1])
        assert len(transport.sent) == 4
        transport.faults = ["503"] * 10
        with pytest.raises(ServiceProblem, match="try again"):
            client.collections()


def test_a_file_that_cannot_be_fetched_is_an_unreachable_service_and_leaves_no_file(app, tmp_path):
    client = Client("http://localhost", transport=Blocking(Lossy(app, "before")))
    with client, pytest.raises(ServiceUnreachable, match="cannot be reached"):
        client.collection("things").save_model(tmp_path / "model.star")

    async def fetch():
        async with AsyncClient("http://localhost", transport=Lossy(app, "before")) as client:
            await client.collection("things").save_model(tmp_path / "model.star")

    with pytest.raises(ServiceUnreachable, match="cannot be reached"):
        asyncio.run(fetch())
    assert not list(tmp_path.glob("*model*"))


def test_what_has_no_key_is_not_sent_again_once_it_may_have_worked(app):
    transport = Lossy(app, "after")
    with Client("http://localhost", transport=Blocking(transport), retries=QUICK) as client:
        with pytest.raises(ServiceUnreachable, match=r"\(lost\)\. It may have done"):
            client.collection("things").make_snapshot("one")
        assert len(transport.sent) == 1
        transport.faults = ["before"]
        client.collection("things").make_snapshot("two")


def test_the_asynchronous_client_sends_the_same(app, rows):
    async def use():
        transport = Lossy(app, "after")
        async with AsyncClient("http://localhost", transport=transport, retries=QUICK) as client:
            things = client.collection("things")
            written = await things.add(rows[:2])
            assert (written.ids, written.repeated) == ([20, 21], True)
            found = await asyncio.gather(*(things.search(rows[place : place + 1], k=1) for place in range(20)))
            assert [each[0].hits[0].distance for each in found] == [0] * 20
            assert (await client.collections())[0].n_items == 22

    asyncio.run(use())


def test_the_synchronous_client_is_what_the_script_writes():
    spec = spec_from_file_location("write_sync_client", ROOT / "scripts" / "write_sync_client.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    written = script.synchronous(script.SOURCE.read_text(encoding="utf-8"))
    assert script.TARGET.read_text(encoding="utf-8") == written, "run: python scripts/write_sync_client.py"


def test_a_sent_file_says_how_long_it_is(tmp_path):
    (tmp_path / "model").write_bytes(b"no model")
    lengths = []

    def answer(request):
        lengths.append((request.headers.get("content-length"), request.headers.get("transfer-encoding")))
        return httpx.Response(500, json={"detail": "enough"})

    with Client("http://localhost", transport=httpx.MockTransport(answer)) as client, pytest.raises(ServiceProblem):
        client.collection("things").replace_model(tmp_path / "model")
    assert lengths == [("8", None)]


def test_what_clients_and_service_share_needs_no_httpx():
    blocked = "import sys; sys.modules['httpx'] = None; import starshl.client.answers, starshl.service"
    subprocess.run([sys.executable, "-c", blocked], check=True)


def test_a_token_is_sent(tmp_path, app):
    token = "reader-" + "r" * 20
    folder = app.state.service.searcher("things").folder
    settings = Settings(tokens=Tokens([Token.of(token, READ)]))
    guarded = create_app(lambda observer: Service([folder], read_only=True, observer=observer), settings)
    with Client("http://localhost", transport=Blocking(Lossy(guarded)), retries=QUICK, token=token) as client:
        assert client.collections()[0].writable is False
        with pytest.raises(ServiceProblem, match="reading only"):
            client.collection("things").remove([1])
    guarded.state.service.close()


@pytest.mark.parametrize(
    ("vectors", "message"), [([1.0, 2.0], "shape"), (np.empty((0, 4)), "at least one"), ([[np.nan] * 4], "NaN")]
)
def test_vectors_that_cannot_be_sent_are_refused_here(things, vectors, message):
    with pytest.raises(ValueError, match=message):
        things.search(vectors)


def test_lists_of_different_lengths_are_refused_here(things, rows):
    with pytest.raises(ValueError, match="1 values of label"):
        things.add(rows[:2], labels=[1])
    with pytest.raises(ValueError, match="1 values of metadata"):
        things.update([1, 2], [{}])
    with pytest.raises(ValueError, match="3 values of label"):
        things.set_labels([1, 2], ["a", "b", "c"])


def test_a_client_and_its_collections_say_where_they_are(things):
    assert repr(things) == "Client('http://localhost').collection('things')"
    assert repr(AsyncClient("http://localhost").collection("a")) == "AsyncClient('http://localhost').collection('a')"


def test_a_service_and_its_searchers_say_what_they_hold(app):
    service = app.state.service
    assert repr(service) == "Service(['things'])"
    searcher = service.searcher("things")
    assert repr(searcher) == f"Searcher({str(searcher.folder)!r}, name='things')"
