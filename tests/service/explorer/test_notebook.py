"""The pages of a collection that is open in a notebook."""

import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from starshl import Collection
from starshl.service import Explorer, Service
from starshl.service.errors import ConflictError

from .acting import until

SCRIPT = """
import sys
from starshl import Collection
pages = Collection(sys.argv[1]).explore()
print(pages.address)
"""


@pytest.fixture
def album(template, tmp_path):
    with Collection(shutil.copytree(template, tmp_path / "album")) as collection:
        yield collection


def test_pages_share_the_open_collection_and_leave_it_open(album):
    with album.explore(height=500) as pages:
        assert isinstance(pages, Explorer)
        root = pages.address.replace("/explore/", "/api/v1/collections/")
        assert httpx.get(pages.address).status_code == 200
        httpx.put(f"{root}/labels", json={"items": [{"id": 3, "label": "round"}]}).raise_for_status()
        assert album.get([3])[0].label == "round"
        album.set_labels([3], ["square"])
        assert httpx.get(f"{root}/items/3").json()["label"] == "square"
        shown = pages._repr_html_()
        assert f'src="{pages.address}"' in shown
        assert 'height="500"' in shown
    assert album.get([3])[0].label == "square"
    with pytest.raises(httpx.ConnectError):
        httpx.get(pages.address)


def test_pages_of_a_collection_that_is_open_for_reading_change_nothing(album):
    album.close()
    with Collection(album.folder, read_only=True) as collection, collection.explore() as pages:
        root = pages.address.replace("/explore/", "/api/v1/collections/")
        assert not httpx.get(root).json()["writable"]
        assert httpx.put(f"{root}/labels", json={"items": [{"id": 3, "label": "round"}]}).status_code == 403


def test_an_open_collection_is_not_replaced_under_the_hands_of_its_owner(album):
    service = Service([album])
    try:
        with pytest.raises(ConflictError, match="is open elsewhere"):
            service.searcher("album").replace_folder(lambda: None)
    finally:
        service.close()
    assert len(album) == 240


def test_a_process_that_closes_nothing_ends_all_the_same(album):
    album.close()
    ended = subprocess.run([sys.executable, "-c", SCRIPT, album.folder], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    with pytest.raises(httpx.ConnectError):
        httpx.get(ended.stdout.strip())
    with Collection(album.folder) as again:  # its lock is free
        assert len(again) == 240


@pytest.fixture
def notebook(album):
    """A function that returns the address of a page with the pages in a frame, at a host of this machine."""
    with album.explore() as pages:
        body = f"<!doctype html><title>x</title>{pages._repr_html_()}".encode()

        class Notebook(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Notebook) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield lambda host: f"http://{host}:{server.server_port}/"
            server.shutdown()


def test_a_notebook_shows_the_pages_in_a_frame_and_other_sites_do_not(notebook, chromium):
    page = chromium.new_page()
    for host in ("localhost", "127.0.0.1"):
        page.goto(notebook(host))
        frame = page.frames[1]
        frame.click(".grid .tile >> nth=0")
        frame.wait_for_selector("#viewer[open] h2")
    page.goto(notebook("another.localhost"))
    until(page, "document.readyState === 'complete'")
    page.wait_for_timeout(500)
    assert page.frames[1].locator(".tile").count() == 0
    page.close()
