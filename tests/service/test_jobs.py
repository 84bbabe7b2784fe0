"""Jobs report, fail with words, and stop when asked; imports store each batch once."""

import json
import threading
import time
from dataclasses import asdict

import numpy as np
import pytest

from starshl import StarRidge
from starshl.hashers.baselines import LSHash
from starshl.service import Searcher
from starshl.service.errors import ConflictError
from starshl.service.jobs import JobLog, Jobs, RunningJob

from .asking import ended

THINGS = "/collections/things"
KEY = {"Idempotency-Key": "file"}


def lines_of(rows, **fields):
    return "".join(json.dumps({"vector": row.tolist(), **fields}) + "\n" for row in rows)


def test_a_job_can_be_canceled_before_and_while_it_runs():
    jobs, running, go_on = Jobs(), threading.Event(), threading.Event()

    def work(job):
        running.set()
        assert go_on.wait(60)
        job.report("next step")
        return {}

    first, second = jobs.start("slow", "things", work), jobs.start("never", "things", work)
    assert running.wait(60)
    jobs.cancel("things", first.id)
    jobs.cancel("things", second.id)
    go_on.set()
    jobs.close()
    assert [job.state for job in jobs.list("things")] == ["canceled", "canceled"]
    assert jobs.get("things", second.id).stage == ""
    with pytest.raises(ConflictError, match="over"):
        jobs.cancel("things", first.id)


def test_an_unexpected_failure_of_a_job_is_not_told_in_detail(caplog):
    jobs = Jobs()

    def work(job):
        raise RuntimeError("secret")

    job = jobs.start("bad", "things", work)
    jobs.close()
    found = jobs.get("things", job.id)
    assert (found.state, "secret" in found.error) == ("failed", False)
    assert "secret" in caplog.text


def test_an_import_stores_lines_and_a_second_one_with_its_key_stores_nothing(ask, rows, monkeypatch):
    monkeypatch.setattr("starshl.service.http.bulk_import.LINES_AT_ONCE", 7)
    content, key = lines_of(rows, label="a", metadata={"from": "file"}) + "\n", {"Idempotency-Key": "file-1"}
    job = ended(ask, ask("POST", f"{THINGS}/import", content=content, headers=key))
    assert (job["state"], job["result"], job["done"]) == ("done", {"stored": 60, "repeated": 0}, 60)
    again = ended(ask, ask("POST", f"{THINGS}/import", content=content, headers=key))
    assert again["result"] == {"stored": 0, "repeated": 60}
    assert ask("GET", THINGS).json()["n_items"] == 120
    assert ask("GET", f"{THINGS}/items/119").json()["metadata"] == {"from": "file"}
    assert [job["kind"] for job in ask("GET", f"{THINGS}/jobs").json()["jobs"]] == ["import", "import"]


def test_an_import_that_was_cut_short_goes_on_where_it_stopped(ask, rows, monkeypatch):
    monkeypatch.setattr("starshl.service.http.bulk_import.LINES_AT_ONCE", 10)
    key = {"Idempotency-Key": "file-2"}
    ended(ask, ask("POST", f"{THINGS}/import", content=lines_of(rows[:20]), headers=key))
    job = ended(ask, ask("POST", f"{THINGS}/import", content=lines_of(rows), headers=key))
    assert job["result"] == {"stored": 40, "repeated": 20}


def log_of(folder):
    return folder.with_name("things.jobs")


def after_a_kill(running, folder, n_lines):
    """Start a second service as if the first one had been killed when its log had so many lines."""
    lines = log_of(folder).read_bytes().splitlines(keepends=True)
    log_of(folder).write_bytes(b"".join(lines[:n_lines]) + b'{"id": "torn')
    again = running(folder)
    (job,) = again("GET", f"{THINGS}/jobs").json()["jobs"]
    return again, job


def test_an_import_that_the_end_of_the_service_cut_short_says_what_is_stored_and_goes_on(
    running, folder, rows, monkeypatch
):
    monkeypatch.setattr("starshl.service.http.bulk_import.LINES_AT_ONCE", 10)
    first, second_batch, go_on = running(folder), threading.Event(), threading.Event()
    add = Searcher.add

    def add_slowly(self, *arguments):
        if len(self) == 70:
            second_batch.set()
            assert go_on.wait(60)
        future = add(self, *arguments)
        future.result()
        return future

    monkeypatch.setattr(Searcher, "add", add_slowly)
    sent = first("POST", f"{THINGS}/import", content=lines_of(rows), headers=KEY).json()
    assert sent["key"] == "file"
    assert second_batch.wait(60)
    jobs = first.app.state.service.jobs
    closing = threading.Thread(target=jobs.close)
    closing.start()
    while not jobs._jobs[sent["id"]].stop.is_set():
        time.sleep(0.01)
    go_on.set()
    closing.join()
    first.app.state.service.close()
    monkeypatch.setattr(Searcher, "add", add)

    again = running(folder)
    job = again("GET", f"{THINGS}/jobs/{sent['id']}").json()
    assert (job["state"], job["done"], job["total"]) == ("interrupted", 20, 60)
    assert again("GET", THINGS).json()["n_items"] == 80
    assert "20 of 60 items" in job["error"]
    assert again("POST", f"{THINGS}/jobs/{sent['id']}/cancel").status_code == 409
    rest = ended(again, again("POST", f"{THINGS}/import", content=lines_of(rows), headers=KEY))
    assert rest["result"] == {"stored": 40, "repeated": 20}


def test_a_job_that_had_finished_when_the_service_was_killed_is_done(running, folder, rows, tmp_path):
    LSHash(16, random_state=3).fit(rows).save(tmp_path / "model")
    first = running(folder)
    before = ended(first, first("PUT", f"{THINGS}/model", content=(tmp_path / "model").read_bytes()))
    first.app.state.service.close()
    again, job = after_a_kill(running, folder, -1)
    assert (job["state"], job["result"]) == ("done", {"method": "LSHash", "n_bits": 16})
    assert job["id"] == before["id"]
    again.app.state.service.close()
    first = running(folder)
    assert first("GET", f"{THINGS}/jobs").json()["jobs"] == [job]


def test_a_job_that_had_changed_nothing_when_the_service_was_killed_says_so(running, folder):
    log_of(folder).write_text(json.dumps(asdict(RunningJob("fit", "things", state="running").as_job())) + "\n")
    _, job = after_a_kill(running, folder, 1)
    assert (job["state"], "The job has changed nothing" in job["error"]) == ("interrupted", True)


def test_the_log_of_jobs_forgets_what_is_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("starshl.service.jobs.MOST_JOBS", 3)
    monkeypatch.setattr("starshl.service.jobs.MOST_LINES", 10)
    log = JobLog(tmp_path / "things.jobs")
    jobs = Jobs({"things": log})
    names = []
    for _ in range(8):
        names.append(jobs.start("easy", "things", lambda job: {}).id)
        while jobs.get("things", names[-1]).ended is None:
            time.sleep(0.001)
    jobs.close()
    assert [job.id for job in jobs.list("things")] == names[-3:]
    assert len((tmp_path / "things.jobs").read_bytes().splitlines()) <= 13
    assert [job.id for job in log.read()][-3:] == names[-3:]
    assert {job.state for job in log.read()} == {"done"}


def test_a_model_from_elsewhere_encodes_all_items_again(ask, rows, tmp_path):
    LSHash(16, random_state=3).fit(rows).save(tmp_path / "model")
    job = ended(ask, ask("PUT", f"{THINGS}/model", content=(tmp_path / "model").read_bytes()))
    assert (job["state"], job["result"]) == ("done", {"method": "LSHash", "n_bits": 16})
    assert ask("GET", THINGS).json()["n_bits"] == 16
    assert ask("GET", f"{THINGS}/model").content == (tmp_path / "model").read_bytes()


def test_models_that_do_not_fit_are_refused_at_once(ask, rows, tmp_path):
    assert ask("PUT", f"{THINGS}/model", content=b"not a model").status_code == 422
    LSHash(16, random_state=3).fit(rows[:, :5]).save(tmp_path / "model")
    response = ask("PUT", f"{THINGS}/model", content=(tmp_path / "model").read_bytes())
    assert (response.status_code, "rows of 5" in response.json()["detail"]) == (422, True)
    assert not list(tmp_path.glob(".things*"))


def test_a_fit_in_another_process_gives_the_hasher_that_the_library_gives(ask, rows):
    job = ended(ask, ask("POST", f"{THINGS}/fit", json={"method": "LSHash", "n_bits": 16, "seed": 5}), seconds=300)
    assert (job["state"], job["result"]["labels"]) == ("done", 60)
    with ask.app.state.service.searcher("things").opened() as collection:
        expected = LSHash(16, random_state=5).fit(collection.vectors(range(60)))
        assert collection.hasher.encode(rows) == expected.encode(rows)
        assert collection.codes([0, 1]) == expected.encode(collection.vectors([0, 1]))


@pytest.mark.slow
def test_a_fit_learns_from_the_labels_and_predicts_then(ask, rows):
    """In another process; the hasher is the one that a fit here gives, up to the rounding of kept vectors."""
    job = ended(ask, ask("POST", f"{THINGS}/fit", json={"n_bits": 12, "seed": 1}), seconds=300)
    assert (job["state"], job["error"]) == ("done", None)
    assert (job["result"]["method"], job["result"]["labels"]) == ("StarRidge", 60)
    info = ask("GET", THINGS).json()
    assert (info["n_bits"], info["classes"], info["predicts"]) == (12, ["a", "b", "c"], True)
    answer = ask("POST", f"{THINGS}/predict", json={"vectors": rows[:9].tolist(), "probabilities": True}).json()
    with ask.app.state.service.searcher("things").opened() as collection:
        kept = collection.vectors(range(60))
    expected = StarRidge(12, random_state=1).fit(kept, ["abc"[i % 3] for i in range(60)])
    assert answer["labels"] == expected.predict(rows[:9]).tolist()
    assert all(sum(row) == pytest.approx(1.0) for row in answer["probabilities"])
    strange = {"vectors": [rows[0].tolist(), [90.0] * 8], "k": 2, "reject": 0.05}
    found = ask("POST", f"{THINGS}/search", json=strange).json()["results"]
    assert [len(each["hits"]) for each in found] == [2, 0]
    novelty = expected.novelty(np.array(strange["vectors"]))
    assert [each["novelty"] for each in found] == pytest.approx(novelty.tolist(), abs=0.02)


@pytest.mark.slow
def test_a_fit_can_be_canceled_while_it_runs(ask):
    response = ask("POST", f"{THINGS}/fit", json={"n_bits": 12})
    started = time.monotonic()
    while ask("GET", f"{THINGS}/jobs/{response.json()['id']}").json()["stage"] != "fitting":
        assert time.monotonic() < started + 60
        time.sleep(0.01)
    assert ask("POST", f"{THINGS}/jobs/{response.json()['id']}/cancel").status_code == 200
    assert ended(ask, response)["state"] == "canceled"
    assert ask("GET", THINGS).json()["method"] == "LSHash"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"method": "NoSuch"}, "NoSuch"),
        ({"settings": {"no_such": 1}}, "no setting 'no_such'"),
        ({"n_bits": 0}, "n_bits"),
    ],
)
def test_fits_that_cannot_work_are_refused_at_once(shared, body, words):
    response = shared("POST", f"{THINGS}/fit", json=body)
    assert (response.status_code, words in response.json()["detail"]) == (422, True)
