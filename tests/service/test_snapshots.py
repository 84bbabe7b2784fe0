"""Snapshots restore what was there, and nothing that starshl did not make gets unpacked."""

import io
import shutil
import tarfile
import threading

import pytest

from starshl import Collection
from starshl.collection import import_texts
from starshl.collection.folder import is_own_file
from starshl.exceptions import CollectionError
from starshl.service import Searcher, Service
from starshl.service.errors import ConflictError, UnknownError
from starshl.service.inputs import picture_and_preview, picture_vector, text_vectors
from starshl.service.lock import ReadersWriterLock
from starshl.service.snapshots import SnapshotFolder, read_archive, write_archive
from starshl.service.writes import NewItems

THINGS = "/collections/things"


@pytest.fixture
def service(folder):
    opened = Service([folder])
    yield opened
    opened.close()


def archive_of(folder):
    file = io.BytesIO()
    write_archive(file, folder)
    return file.getvalue()


def unpacked(content):
    return {name: stream.read() for name, stream in read_archive(io.BytesIO(content))}


def test_a_snapshot_brings_a_state_back(service, rows):
    searcher, snapshots = service.searcher("things"), service.snapshots("things")
    made = snapshots.make(searcher, "monday")
    searcher.writer.remove(range(30)).result(60)
    searcher.add(NewItems(rows[:1].tolist())).result(60)
    assert snapshots.restore(searcher, "monday") == 60
    assert len(searcher) == 60
    assert searcher.search(rows[:1].tolist()).result(60)[0].hits[0].id == 0
    assert searcher.add(NewItems(rows[:1].tolist())).result(60).ids == [60]
    assert [info.name for info in snapshots.list()] == [made.name]


def test_a_snapshot_restores_on_another_machine(ask, running, template, tmp_path, rows):
    ask("POST", f"{THINGS}/items", json={"items": [{"vector": rows[0].tolist(), "metadata": {"new": True}}]})
    assert ask("POST", f"{THINGS}/snapshots", json={"name": "moved"}).status_code == 201
    content = ask("GET", f"{THINGS}/snapshots/moved").content
    elsewhere = shutil.copytree(template, tmp_path / "elsewhere" / "things")
    other = running(elsewhere)
    assert other("PUT", f"{THINGS}/snapshots/moved", content=content).status_code == 201
    assert other("POST", f"{THINGS}/snapshots/moved/restore").json() == {"n_items": 61}
    assert other("GET", f"{THINGS}/items/60").json()["metadata"] == {"new": True}
    assert other("DELETE", f"{THINGS}/snapshots/moved").status_code == 204
    assert other("GET", f"{THINGS}/snapshots").json() == {"snapshots": []}


def test_a_snapshot_is_a_tar_that_any_program_unpacks(folder, tmp_path):
    with tarfile.open(fileobj=io.BytesIO(archive_of(folder))) as tar:
        tar.extractall(tmp_path / "by_hand", filter="data")
    (tmp_path / "by_hand" / "manifest.json").unlink()
    with Collection(tmp_path / "by_hand") as collection:
        assert collection.verify() == 60


def test_every_file_of_a_collection_is_known_as_its_own(service, folder):
    searcher = service.searcher("things")
    searcher.writer.remove(range(3)).result(60)
    names = sorted(path.name for path in folder.iterdir())
    assert "items.sqlite" in names
    assert [name for name in names if not is_own_file(name)] == []


def test_what_others_put_into_the_folder_survives_a_restore(service, folder):
    searcher, snapshots = service.searcher("things"), service.snapshots("things")
    snapshots.make(searcher, "monday")
    (folder / "notes.txt").write_text("keep me")
    (folder / "photos").mkdir()
    (folder / "photos" / "cat.txt").write_text("keep me, too")
    assert snapshots.restore(searcher, "monday") == 60
    assert (folder / "notes.txt").read_text() == "keep me"
    assert (folder / "photos" / "cat.txt").read_text() == "keep me, too"
    assert not list(folder.parent.glob(".things.before-restore"))


def test_what_others_put_into_the_folder_survives_a_crash_in_the_middle_of_a_restore(folder):
    aside = shutil.copytree(folder, folder.with_name(".things.before-restore"))
    (aside / "notes.txt").write_text("keep me")
    Service([folder]).close()
    assert (folder / "notes.txt").read_text() == "keep me"
    assert not aside.exists()


@pytest.mark.parametrize("name", [".things.before-restore", ".things.0123456789ab.partial", ".things.job-abcd_123"])
def test_a_link_in_place_of_what_a_crash_leaves_leads_to_no_change(folder, tmp_path, name):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("keep me")
    folder.with_name(name).symlink_to(tmp_path / "letters")
    Service([folder]).close()
    assert (tmp_path / "letters" / "dear.txt").read_text() == "keep me"
    assert not (folder / "dear.txt").exists()


def test_a_file_in_place_of_a_folder_that_a_crash_leaves_stops_no_service(folder):
    folder.with_name(".things.before-restore").write_text("x")
    Service([folder]).close()


@pytest.mark.parametrize("name", ["my notes.txt", "notes.txt", "Grüße.txt", "manifest.json", "x" * 120])
def test_files_that_others_put_into_the_folder_do_not_spoil_a_snapshot(folder, name):
    expected = unpacked(archive_of(folder))
    (folder / name).write_text("something else")
    assert unpacked(archive_of(folder)) == expected


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_among_the_snapshots_hands_out_nothing(running, folder, tmp_path, link):
    secret = tmp_path / "secret"
    secret.write_text("precious")
    snapshots = folder.with_name("things.snapshots")
    snapshots.mkdir()
    getattr(snapshots / "planted.starsnap", link)(secret)
    ask = running(folder)
    assert ask("GET", f"{THINGS}/snapshots").json()["snapshots"] == []
    for method, path in [("GET", ""), ("POST", "/restore"), ("DELETE", "")]:
        assert ask(method, f"{THINGS}/snapshots/planted{path}").status_code == 404
    assert ask("POST", f"{THINGS}/snapshots", json={"name": "planted"}).status_code == 409
    assert secret.read_text() == "precious"


@pytest.mark.parametrize(("part", "status"), [("bytes=5-2", 400), ("bytes=99999999-", 416), ("lines=1-2", 400)])
def test_a_part_that_a_snapshot_does_not_have_is_a_problem_document(ask, part, status):
    ask("POST", f"{THINGS}/snapshots", json={"name": "whole"})
    address = f"{THINGS}/snapshots/whole"
    refused = ask("GET", address, headers={"Range": part})
    assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
    assert part in refused.json()["detail"]
    assert refused.headers.get("content-range", "").startswith("bytes */") == (status == 416)
    some = ask("GET", address, headers={"Range": "bytes=2-5"})
    assert (some.status_code, some.content) == (206, ask("GET", address).content[2:6])


def test_a_snapshot_without_a_name_gets_the_time(ask):
    name = ask("POST", f"{THINGS}/snapshots").json()["name"]
    assert len(name) == len("20270131-120000")
    response = ask("POST", f"{THINGS}/snapshots", json={"name": name})
    assert (response.status_code, response.json()["type"]) == (409, "/problems/conflict")


@pytest.mark.parametrize(
    "name", ["../evil", "..", ".hidden", "a/b", "a\\b", "", "x" * 101, "a.b", "a\0b", "-a", "é", "a b"]
)
def test_names_that_could_lead_elsewhere_are_refused(service, name):
    snapshots = service.snapshots("things")
    for use in (snapshots.path, snapshots.delete, lambda name: snapshots.receive(name).__enter__()):
        with pytest.raises(ValueError, match="cannot name a snapshot"):
            use(name)


@pytest.mark.parametrize("name", ["..%2Fevil", "%2e%2e", "a%2Fb", "%00", "%5C"])
def test_names_in_addresses_that_could_lead_elsewhere_are_refused(ask, name):
    for method, path in (("GET", name), ("PUT", name), ("DELETE", name), ("POST", f"{name}/restore")):
        assert ask(method, f"{THINGS}/snapshots/{path}").status_code in (404, 405, 422)


def with_member(content, change):
    """Return an archive with one more member, made by a function that changes its header."""
    header = tarfile.TarInfo("more.bin")
    header.size = 4
    change(header)
    block = header.tobuf(tarfile.GNU_FORMAT)
    return block + b"data" + bytes(508) + content


@pytest.mark.parametrize(
    "change",
    [
        lambda header: setattr(header, "name", "../evil"),
        lambda header: setattr(header, "name", "/etc/evil"),
        lambda header: setattr(header, "name", ".hidden"),
        lambda header: setattr(header, "name", "a/b"),
        lambda header: setattr(header, "type", tarfile.SYMTYPE),
        lambda header: setattr(header, "type", tarfile.LNKTYPE),
        lambda header: setattr(header, "type", tarfile.DIRTYPE),
        lambda header: setattr(header, "type", tarfile.GNUTYPE_SPARSE),
        lambda header: setattr(header, "type", tarfile.XHDTYPE),
        lambda header: setattr(header, "size", 1 << 40),
        lambda header: None,
    ],
)
def test_archives_with_anything_but_plain_files_are_refused(service, folder, change, tmp_path):
    crafted = with_member(archive_of(folder), change)
    snapshots = service.snapshots("things")
    with pytest.raises(ValueError, match="snapshot"), snapshots.receive("crafted") as file:
        file.write(crafted)
    assert snapshots.list() == []
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    "name", ["items.sqlite-journal", "writer.lock", "items.sqlite-shm", "notes.txt", "hasher.draft"]
)
def test_archives_hold_only_files_of_a_state(folder, tmp_path, name):
    (folder / name).write_bytes(b"anything")
    assert name not in unpacked(archive_of(folder))
    content = bytearray(archive_of(folder))
    # The name of the first file, and the checksum of its header.
    header = tarfile.TarInfo.frombuf(bytes(content[:512]), "ascii", "strict")
    header.name = name
    content[:512] = header.tobuf(tarfile.GNU_FORMAT, "ascii", "strict")
    with pytest.raises(ValueError, match="not made by starshl"):
        unpacked(bytes(content))


def test_archives_that_are_cut_or_changed_are_refused(folder):
    content = archive_of(folder)
    expected = unpacked(content)
    assert "items.sqlite" in expected
    for length in (0, 1, 511, 512, 700, len(content) // 2, len(content) - 1500):
        with pytest.raises(ValueError, match="snapshot"):
            unpacked(content[:length])
    changed = bytearray(content)
    changed[600] ^= 1
    with pytest.raises(ValueError, match="snapshot"):
        unpacked(bytes(changed))


def test_a_damaged_snapshot_leaves_the_collection_as_it_is(service):
    searcher, snapshots = service.searcher("things"), service.snapshots("things")
    snapshots.make(searcher, "bad")
    path = snapshots.path("bad")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        snapshots.restore(searcher, "bad")
    assert len(searcher) == 60
    assert not list(searcher.folder.parent.glob(".things*"))


def test_unknown_snapshots_are_reported(service):
    with pytest.raises(UnknownError, match="no snapshot 'none'"):
        service.snapshots("things").restore(service.searcher("things"), "none")
    service.snapshots("things").make(service.searcher("things"), "twice")
    with pytest.raises(ConflictError, match="already"):
        service.snapshots("things").make(service.searcher("things"), "twice")


def test_what_a_crash_left_of_a_snapshot_is_cleared(folder):
    place = folder.with_name("things.snapshots")
    place.mkdir()
    (place / ".monday.starsnap.0123456789ab.partial").write_bytes(b"half")
    service = Service([folder])
    service.snapshots("things").make(service.searcher("things"), "monday")
    service.close()
    assert [path.name for path in place.iterdir()] == ["monday.starsnap"]


DRAFT, JOB = ".things.0123456789ab.partial", ".things.job-abcd_123"


def test_a_crash_in_the_middle_of_a_restore_is_put_right(folder, tmp_path):
    aside, others = tmp_path / ".things.before-restore", tmp_path / ".things.more.0123456789ab.partial"
    others.mkdir()
    folder.rename(aside)
    for left in (DRAFT, JOB):
        (tmp_path / left).mkdir()
    for _ in range(2):
        service = Service([folder])
        assert len(service.searcher("things")) == 60
        service.close()
        left = sorted(path.name for path in tmp_path.iterdir())
        assert left == [others.name, "things"], "what belongs to a collection of another name stays"
        shutil.copytree(folder, aside)  # a crash after the new one was in place


def test_a_second_service_is_refused_and_touches_nothing_of_the_first(service, folder):
    for left in (DRAFT, JOB):
        (folder.parent / left).mkdir()
    with pytest.raises(CollectionError, match="Another process is writing"):
        Service([folder])
    assert all((folder.parent / left).exists() for left in (DRAFT, JOB))


def test_nothing_but_the_batches_waits_while_a_collection_is_swapped(folder, rows):
    """A route that waited itself would keep all other requests waiting."""
    searcher = Searcher(folder)
    entered, leave = threading.Event(), threading.Event()
    swap = searcher.replace_folder(lambda: entered.set() or leave.wait(60))
    assert entered.wait(60)
    vector = rows[:1].tolist()
    futures = [
        searcher.search(vector),
        searcher.encode(vector),
        searcher.add(NewItems(vector)),
        searcher.writer.remove([5]),
    ]
    with pytest.raises(ValueError, match="7 numbers"):
        searcher.search(rows[:1, :7].tolist())
    assert not searcher.is_ready
    assert not any(future.done() for future in futures)
    leave.set()
    swap.result(60)
    assert [future.result(60) is not None for future in futures] == [True] * 4
    searcher.close()


def test_pictures_and_texts_wait_elsewhere_while_a_collection_is_swapped(tmp_path):
    import_texts(["bread and soup", "engine of a car"] * 6, tmp_path / "texts")
    searcher = Searcher(tmp_path / "texts")
    entered, leave = threading.Event(), threading.Event()
    swap = searcher.replace_folder(lambda: entered.set() or leave.wait(60))
    assert entered.wait(60)
    futures = [text_vectors(searcher, ["soup"]), picture_vector(searcher, b""), picture_and_preview(searcher, b"")]
    leave.set()
    swap.result(60)
    assert futures[0].result(60).shape == (1, searcher.info().n_columns)
    for future in futures[1:]:
        with pytest.raises(ValueError, match="picture"):
            future.result(60)
    searcher.close()


def test_a_thread_that_shares_the_lock_may_share_it_again_while_another_waits_to_have_it():
    lock, order = ReadersWriterLock(), []

    def have_alone():
        with lock.exclusive():
            order.append("alone")

    waiting = threading.Thread(target=have_alone)
    with lock.shared():
        waiting.start()
        while not lock.has_writer:
            waiting.join(0.001)
        with lock.shared():
            order.append("inside twice")
        order.append("inside")
    waiting.join(60)
    assert order == ["inside twice", "inside", "alone"]
    with lock.shared():
        order.append("again")
    assert order[-1] == "again"


def test_searches_go_on_while_a_collection_is_restored(folder, rows):
    searcher = Searcher(folder)
    snapshots = SnapshotFolder(folder.with_name("kept"))
    snapshots.make(searcher, "one")
    futures = []
    for _ in range(3):
        futures += [searcher.search(rows[:1].tolist()) for _ in range(5)]
        snapshots.restore(searcher, "one")
    assert {future.result(60)[0].hits[0].id for future in futures} == {0}
    searcher.close()
