"""Kill a service at a random instant, again and again: while it stores, makes snapshots, restores, or imports.

    python tests/campaigns/killed_services.py --kills 200

Every acknowledged write must survive, every batch must be stored completely or not at all, and what is sent again with
its key must be stored once. Each snapshot that is listed must restore, a restore must leave a whole collection, and an
interrupted import must say truthfully how much it has stored. The last line counts; a violation ends the campaign with
an error.
"""

import argparse
import asyncio
import collections
import json
import os
import signal
import socket
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from starshl import Collection
from starshl.hashers.baselines import LSHash
from starshl.service import Service, create_app
from starshl.service.http.server import run
from starshl.service.settings import Settings
from starshl.service.snapshots import read_archive

N_ITEMS, N_COLUMNS, BATCH = 200, 8, 3
KILLS_PER_COLLECTION = 20
ROOT = "/api/v1/collections/things"


class Served:
    """A service in a child process, on a socket that is bound here."""

    def __init__(self, folder):
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.pid = os.fork()
        if self.pid == 0:
            try:
                settings = Settings(port=0)
                run(create_app(lambda observer: Service([folder], observer=observer), settings), settings, listener)
            finally:
                os._exit(1)
        listener.close()

    async def ready(self, http):
        for _ in range(3000):
            try:
                await http.get("/api/v1/health/ready")
                return
            except httpx.TransportError:
                await asyncio.sleep(0.02)
        raise RuntimeError("the service did not start")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Campaign:
    """One collection that outlives many services."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        self.rows = rng.standard_normal((N_ITEMS, N_COLUMNS)).round(3)
        hasher = LSHash(24, random_state=0).fit(self.rows)
        with Collection.create(folder, hasher, vectors="float16", fields={"batch": str}) as collection:
            collection.add(self.rows, metadata=[{"batch": "first"}] * N_ITEMS)
        self.begun, self.acknowledged = {}, {}
        self.counts = collections.Counter()
        self.import_key, self.n_imports, self.n_answers = None, 0, 0

    def cycle(self, kind):
        """Serve, settle what the last kill left open, do one kind of work, and kill."""
        served = Served(self.folder)
        try:
            asyncio.run(self._work(served, kind))
        finally:
            served.kill()
        self.counts[f"kills during {kind}"] += 1
        self.check()

    async def _work(self, served, kind):
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(base_url=served.address, timeout=60, limits=limits) as http:
            await served.ready(http)
            await self.send_again(http)
            tasks = [asyncio.create_task(getattr(self, kind)(http))]
            if kind != "restores":  # they would take acknowledged writes back
                tasks += [asyncio.create_task(self.writes(http)) for _ in range(2)]
            await self.steps(int(self.rng.integers(0, 12)), tasks)
            assert os.waitpid(served.pid, os.WNOHANG) == (0, 0), "the service ended by itself"
            os.kill(served.pid, signal.SIGKILL)
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if not isinstance(outcome, httpx.TransportError):
                    raise outcome or AssertionError("work ended before the kill")

    async def steps(self, n_steps, tasks):
        """Wait for some answers, and then for a part of the time that the next one takes."""
        until = self.n_answers + n_steps
        while self.n_answers < until and not any(task.done() for task in tasks):
            await asyncio.sleep(0.002)
        await asyncio.sleep(float(self.rng.uniform(0.0, 0.1)))

    async def writes(self, http):
        while True:
            key = self.rng.bytes(8).hex()
            item = {"vector": self.rows[0].tolist(), "metadata": {"batch": key}}
            self.begun[key] = {"items": [item] * BATCH}
            response = await self.post(http, "/items", self.begun[key], key)
            self.acknowledged[key] = response["ids"]
            self.counts["acknowledged writes"] += 1

    async def snapshots(self, http):
        while True:
            name = self.rng.bytes(4).hex()
            await self.post(http, "/snapshots", {"name": name})
            self.counts["snapshots"] += 1
            if self.rng.random() < 0.7:
                (await http.delete(f"{ROOT}/snapshots/{name}")).raise_for_status()

    async def restores(self, http):
        await self.post(http, "/snapshots", {"name": f"r{self.rng.bytes(4).hex()}"})
        name = (await http.get(f"{ROOT}/snapshots")).json()["snapshots"][-1]["name"]
        while True:
            await self.post(http, f"/snapshots/{name}/restore", None)
            self.counts["restores"] += 1

    async def imports(self, http):
        self.import_key = self.import_key or f"import-{self.n_imports}"
        self.n_imports += 1
        await self.send_import(http)
        while True:
            await asyncio.sleep(0.01)
            (await http.get(f"{ROOT}/jobs")).raise_for_status()
            self.n_answers += 1

    async def send_import(self, http):
        line = json.dumps({"vector": self.rows[1].tolist(), "metadata": {"batch": self.import_key}}) + "\n"
        headers = {"Idempotency-Key": self.import_key}
        response = await http.post(f"{ROOT}/import", content=line * 5000, headers=headers)
        response.raise_for_status()
        return response.json()["id"]

    async def send_again(self, http):
        """Send the writes again that were not acknowledged, and finish an import that was interrupted."""
        for key, body in self.begun.items():
            if key not in self.acknowledged:
                self.acknowledged[key] = (await self.post(http, "/items", body, key))["ids"]
        if self.import_key is None:
            return
        job = (await http.get(f"{ROOT}/jobs")).json()["jobs"][-1:]
        if job and job[0]["key"] == self.import_key and job[0]["state"] == "interrupted":
            n_stored = (await self.post(http, "/items/count", {"where": {"batch": self.import_key}}))["count"]
            assert n_stored == job[0]["done"], (n_stored, job)
            self.counts["interrupted imports"] += 1
        name = await self.send_import(http)
        while (job := (await http.get(f"{ROOT}/jobs/{name}")).json())["state"] in ("waiting", "running"):
            await asyncio.sleep(0.05)
        assert (job["state"], sum(job["result"].values())) == ("done", 5000), job
        count = (await self.post(http, "/items/count", {"where": {"batch": self.import_key}}))["count"]
        assert count == 5000, count
        await self.post(http, "/items/remove", {"where": {"batch": self.import_key}})
        self.import_key = None

    async def post(self, http, path, body, key=None):
        headers = {} if key is None else {"Idempotency-Key": key}
        response = await http.post(f"{ROOT}{path}", json=body, headers=headers)
        assert response.is_success, (path, response.text)
        self.n_answers += 1
        return response.json()

    def check(self):
        """Compare what is on the disk with what was acknowledged."""
        aside = self.folder.with_name(f".{self.folder.name}.before-restore")
        if not self.folder.exists():
            assert aside.exists(), "the collection is gone"
            return  # the next service puts it back
        with Collection(self.folder, read_only=True) as collection:
            collection.verify()
            stored = collections.defaultdict(list)
            for item in collection.get(collection.ids):
                stored[item.metadata["batch"]].append(item.id)
        for key, ids in self.acknowledged.items():
            assert stored[key] == ids, key
        for key in self.begun:
            assert len(stored[key]) in (0, BATCH), key
        for path in self.folder.with_name(f"{self.folder.name}.snapshots").glob("*.starsnap"):
            with path.open("rb") as file:
                assert len(list(read_archive(file))) > 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    counts, began = collections.Counter(), time.monotonic()
    while (n_kills := sum(n for what, n in counts.items() if what.startswith("kills"))) < options.kills:
        with tempfile.TemporaryDirectory() as place:
            campaign = Campaign(Path(place) / "things", rng)
            for _ in range(min(KILLS_PER_COLLECTION, options.kills - n_kills)):
                kinds = ["writes", "snapshots", "restores", "imports"]
                campaign.cycle(kinds[rng.choice(4, p=[0.4, 0.3, 0.1, 0.2])])
            counts += campaign.counts
        print(f"{round(time.monotonic() - began)} s: {json.dumps(dict(sorted(counts.items())))}", flush=True)


if __name__ == "__main__":
    main()
