"""Load on a service from outside, over loopback: clients that search at a steady rate, and one that writes.

    python benchmarks/serve.py --items 100000 --seconds 60

Starts ``starshl serve`` on a new collection of random vectors with a StarRidge of 3,000 rows, then measures, in this
order: steady searches beside a writer; then, in turns, searches as fast as a number of clients can, and requests
to an echo: an app with the same server, protocol and middleware, which reads and checks the same bodies, returns them
and does nothing else. Prints one line of JSON per measurement, and in the end the ratio of both.

    python benchmarks/serve.py --soak 3600 --items 20000

Sends a mixture of everything the service does instead, 20 requests per second for an hour, and prints the resident
memory of the service once a minute. The number of items stays about the same, so its memory should, too.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

ECHO = """
import gc, sys
from starshl.service import Service, create_app
from starshl.service.http import search, server
from starshl.service.http.schemas import SearchRequest
from starshl.service.settings import Limits, Settings

@search.routes.post("/echo")
async def echo(body: SearchRequest) -> SearchRequest:
    return body

settings = Settings(port=0, limits=Limits(rate=100_000.0, burst=200_000))
with server.bound_socket(settings) as listener:
    app = create_app(lambda observer: Service([sys.argv[1]], read_only=True, observer=observer), settings)
    server.log_as_json()
    gc.collect()
    gc.freeze()
    server.logging.getLogger("starshl").info('"serving"', extra={"fields": {"port": listener.getsockname()[1]}})
    server.run(app, settings, listener)
"""


_TURNS = 5


def make_collection(folder, n_items, n_train, n_columns, n_bits, **settings):
    from starshl import Collection, StarRidge

    rng = np.random.default_rng(0)
    centers = rng.standard_normal((10, n_columns)) * 2
    y = rng.integers(0, 10, n_train)
    hasher = StarRidge(n_bits, random_state=0).fit(centers[y] + rng.standard_normal((n_train, n_columns)), y)
    with Collection.create(folder, hasher, **settings) as collection:
        for _ in range(0, n_items, 5000):
            n = min(5000, n_items - len(collection))
            collection.add(centers[rng.integers(0, 10, n)] + rng.standard_normal((n, n_columns)))
    return centers[rng.integers(0, 10, 1000)] + rng.standard_normal((1000, n_columns))


def start(command, *, until):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    found = None
    for line in process.stderr:
        found = line if until in line else found
        if found and "startup complete" in line:
            break
    # Somebody has to read the log, or the service would wait for it.
    sink = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
    return process, sink, found


async def search_at_a_rate(http, body_of, rate, seconds, times, errors, start_at):
    """Search at fixed moments; the time of a late answer counts from the moment at which it was due."""
    loop = asyncio.get_running_loop()
    for number in range(int(rate * seconds)):
        due = start_at + number / rate
        await asyncio.sleep(max(0.0, due - loop.time()))
        await one_search(http, body_of(), times, errors, due)


async def one_search(http, body, times, errors, due=None):
    loop = asyncio.get_running_loop()
    began = loop.time() if due is None else due
    try:
        response = await http.post("/api/v1/collections/items/search", content=body)
        if response.status_code != 200:
            errors.append(response.status_code)
    except httpx.TransportError as error:
        errors.append(repr(error))
    times.append(loop.time() - began)


async def write_at_a_rate(http, vectors, per_second, seconds, ids, errors):
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(int(per_second * seconds)):
        await asyncio.sleep(max(0.0, began + number / per_second - loop.time()))
        body = {"items": [{"vector": vectors[number % len(vectors)].tolist()}]}
        response = await http.post(
            "/api/v1/collections/items/items", json=body, headers={"Idempotency-Key": f"{began}-{number}"}
        )
        if response.status_code == 201:
            ids.extend(response.json()["ids"])
        else:
            errors.append(response.status_code)


async def steady(address, bodies, vectors, clients, rate, writes, seconds):
    times, errors, ids = [], [], []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients + 1)
    headers = {"Content-Type": "application/json"}
    rng = np.random.default_rng(1)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=30, headers=headers) as http:
        before = (await http.get("/api/v1/collections/items")).json()["n_items"]
        now = asyncio.get_running_loop().time()
        searches = [
            search_at_a_rate(
                http, lambda: bodies[rng.integers(len(bodies))], rate, seconds, times, errors, now + rng.random() / rate
            )
            for _ in range(clients)
        ]
        await asyncio.gather(*searches, write_at_a_rate(http, vectors, writes, seconds, ids, errors))
        after = (await http.get("/api/v1/collections/items")).json()["n_items"]
    lost = before + len(ids) - after
    return summary("steady", times, errors, seconds) | {"written": len(ids), "lost": lost}


async def closed_loop(address, path, bodies, clients, seconds, what):
    """Send requests as fast as answers come, over plain sockets: httpx would take more time than the service."""
    times, errors = [], []
    loop = asyncio.get_running_loop()
    host, port = address.removeprefix("http://").split(":")
    end = loop.time() + seconds

    async def client(number):
        reader, writer = await asyncio.open_connection(host, int(port))
        while loop.time() < end:
            number += 1
            body = bodies[number % len(bodies)]
            head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            began = loop.time()
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(answer.split(b"content-length:")[1].split(b"\r\n")[0]))
            times.append(loop.time() - began)
            if not answer.startswith(b"http/1.1 200"):
                errors.append(answer[:30])
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(client(7 * number) for number in range(clients)))
    return summary(what, times, errors, seconds)


class Mixture:
    """Requests of all kinds, chosen at random: searches, writes, wrong ones, and now and then snapshots and imports."""

    def __init__(self, http, vectors, n_items):
        self.http, self.vectors, self.n_items = http, vectors, n_items
        self.rng = np.random.default_rng(2)
        self.counts, self.times, self.failures = {}, [], []
        self.kinds = {
            self.search: 30, self.filtered: 10, self.recommend: 5, self.listed: 5, self.encoded: 5, self.got: 5,
            self.added: 15, self.replaced: 5, self.labeled: 5, self.updated: 5, self.removed: 5, self.wrong: 4,
            self.metrics: 0.5, self.imported: 0.3, self.snapshot: 0.2,
        }  # fmt: skip

    async def one(self):
        kinds, weights = list(self.kinds), np.array(list(self.kinds.values()))
        kind = kinds[self.rng.choice(len(kinds), p=weights / weights.sum())]
        began = time.perf_counter()
        try:
            await kind()
        except Exception as error:
            self.failures.append(f"{kind.__name__}: {error!r}"[:300])
        self.times.append(time.perf_counter() - began)
        self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1

    async def ask(self, method, path, expected=(200, 201, 202, 204), **settings):
        response = await self.http.request(method, f"/api/v1/collections/items{path}", **settings)
        if response.status_code not in expected:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text[:200]}")
        return response.json() if response.content else None

    def vector(self):
        return (self.vectors[self.rng.integers(len(self.vectors))] + self.rng.normal(0, 0.1)).tolist()

    def item(self):
        number = int(self.rng.integers(1000))
        return {"vector": self.vector(), "metadata": {"page": number, "text": "x" * int(self.rng.integers(200))}}

    def key(self):
        return {"Idempotency-Key": self.rng.bytes(12).hex()}

    async def search(self):
        await self.ask("POST", "/search", json={"vectors": [self.vector()], "k": int(self.rng.integers(1, 50))})

    async def filtered(self):
        name = "page" if self.rng.random() < 0.9 else "text"
        low = int(self.rng.integers(900)) if name == "page" else "x"
        body = {"vectors": [self.vector()], "where": {name: {">": low}}, "explain": bool(self.rng.random() < 0.5)}
        # Until the first item with a text is stored, no item has that field.
        await self.ask("POST", "/search", json=body, expected=(200, 422))

    async def ids(self, n):
        after = int(self.rng.integers(self.n_items))
        found = await self.ask("POST", "/items/list", json={"after": after, "limit": n})
        return [item["id"] for item in found["items"]]

    async def recommend(self):
        await self.ask("POST", "/recommend", json={"like": await self.ids(3)}, expected=(200, 404, 422))

    async def listed(self):
        await self.ask("POST", "/items/count", json={"where": {"page": int(self.rng.integers(1000))}})

    async def encoded(self):
        await self.ask("POST", "/encode", json={"vectors": [self.vector() for _ in range(10)]})
        await self.ask("POST", "/predict", json={"vectors": [self.vector()], "probabilities": True})

    async def got(self):
        await self.ask("POST", "/items/get?vectors=true", json={"ids": await self.ids(20)}, expected=(200, 404, 422))

    async def added(self):
        items = [self.item() for _ in range(int(self.rng.integers(1, 4)))]
        await self.ask("POST", "/items", json={"items": items}, headers=self.key())

    async def replaced(self):
        items = [{**self.item(), "id": item} for item in await self.ids(2)]
        if items:
            await self.ask("PUT", "/items", json={"items": items}, headers=self.key())

    async def labeled(self):
        items = [{"id": item, "label": int(self.rng.integers(10))} for item in await self.ids(2)]
        if items:
            await self.ask("PUT", "/labels", json={"items": items}, headers=self.key(), expected=(200, 404))

    async def updated(self):
        items = [{"id": item, "metadata": {"page": 5}} for item in await self.ids(2)]
        if items:
            await self.ask("PATCH", "/items", json={"items": items}, headers=self.key(), expected=(200, 404))

    async def removed(self):
        """Remove the newest items that are too many, so that as many come as go."""
        n_items = (await self.ask("GET", ""))["n_items"]
        ids = await self.ids(max(1, n_items - self.n_items)) if n_items > self.n_items else []
        if ids:
            await self.ask("POST", "/items/remove", json={"ids": ids}, headers=self.key(), expected=(200, 404))

    async def wrong(self):
        bodies = [{"vectors": [[1.0]]}, {"items": [10**12]}, {"k": 0}, {"items": [1], "where": {"nothing": 1}}]
        body = bodies[int(self.rng.integers(len(bodies)))]
        await self.ask("POST", "/search", json=body, expected=(404, 422))

    async def metrics(self):
        await self.http.get("/api/v1/metrics")

    async def imported(self):
        lines = "\n".join(json.dumps(self.item()) for _ in range(50))
        await self.ask("POST", "/import", content=lines, headers=self.key())

    async def snapshot(self):
        name = self.rng.bytes(6).hex()
        await self.ask("POST", "/snapshots", json={"name": name})
        await self.http.get(f"/api/v1/collections/items/snapshots/{name}")
        if self.rng.random() < 0.3:
            await self.ask("POST", f"/snapshots/{name}/restore")
        await self.ask("DELETE", f"/snapshots/{name}")


async def soak(address, vectors, n_items, rate, seconds, process):
    """Send a mixture at a rate; print the memory of the service once a minute.

    While 20 requests are under way, further ones are left out: a busy machine gets fewer, not ever later ones.
    """
    memory, n_skipped = [], 0
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=60) as http:
        mixture, tasks = Mixture(http, vectors, n_items), set()
        began = time.monotonic()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            if len(tasks) < 20:
                tasks.add(task := asyncio.create_task(mixture.one()))
                task.add_done_callback(tasks.discard)
            else:
                n_skipped += 1
            if number % int(60 * rate) == 0:
                memory.append(resident_mb(process))
                times = mixture.times[-int(60 * rate) :] or [0.0]
                print(
                    json.dumps(
                        {
                            "minute": round((time.monotonic() - began) / 60, 1),
                            "resident_mb": memory[-1],
                            "requests": len(mixture.times),
                            "p99_ms": round(1000 * float(np.quantile(times, 0.99)), 1),
                            "failures": len(mixture.failures),
                            "last_failure": mixture.failures[-1] if mixture.failures else None,
                        }
                    ),
                    flush=True,
                )
        await asyncio.gather(*tasks)
        left = (await mixture.ask("GET", ""))["n_items"]
    late = memory[len(memory) // 2 :]
    slope = float(np.polyfit(range(len(late)), late, 1)[0]) * 60 if len(late) > 1 else 0.0
    found = {"what": "soak", "mb_per_hour_in_the_second_half": round(slope, 1), "items": left, "skipped": n_skipped}
    print(json.dumps(found | mixture.counts))


def resident_mb(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def summary(what, times, errors, seconds):
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return {
        "what": what,
        "requests": len(times),
        "per_second": round(len(times) / seconds, 1),
        "p50_ms": round(1000 * p50, 1),
        "p99_ms": round(1000 * p99, 1),
        "errors": len(errors),
        "first_error": str(errors[0]) if errors else None,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("items", 100_000), ("train", 3000), ("columns", 64), ("bits", 64), ("clients", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=2.0, help="searches per second and client")
    parser.add_argument("--writes", type=float, default=10.0, help="items per second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--closed-seconds", type=float, default=10.0)
    parser.add_argument("--soak", type=float, metavar="SECONDS", help="a mixture of all requests for that long, only")
    parser.add_argument("--soak-rate", type=float, default=20.0, help="requests per second of the mixture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        sizes = options.items, options.train, options.columns, options.bits
        kept = {"vectors": "int8", "fields": {"page": "int"}} if options.soak else {}
        vectors = make_collection(Path(place) / "items", *sizes, **kept)
        bodies = [json.dumps({"vectors": [row.tolist()], "k": 10}).encode() for row in vectors]
        command = [
            sys.executable,
            "-m",
            "starshl.cli.main",
            "serve",
            f"{place}/items",
            "--port",
            "0",
            "--rate",
            "100000",
        ]
        process, sink, line = start(command, until='"serving"')
        try:
            address = f"http://127.0.0.1:{json.loads(line)['port']}"
            path = "/api/v1/collections/items/search"
            if options.soak:
                asyncio.run(soak(address, vectors, options.items, options.soak_rate, options.soak, process))
                return
            asyncio.run(closed_loop(address, path, bodies, 4, 3, "warm up"))
            work = steady(address, bodies, vectors, options.clients, options.rate, options.writes, options.seconds)
            report(work, process)
            beside_an_echo(f"{place}/items", process, address, bodies, options.clients, options.closed_seconds)
        finally:
            process.terminate()
            process.wait()
            sink.wait()


def beside_an_echo(folder, process, address, bodies, clients, seconds):
    echo, sink, line = start([sys.executable, "-c", ECHO, folder], until='\\"serving\\"')
    servers = {"search": (process, address), "echo": (echo, f"http://127.0.0.1:{json.loads(line)['port']}")}
    spent = {what: [] for what in servers}
    try:
        for _ in range(_TURNS):
            for what, (server, where) in servers.items():
                path = f"/api/v1/collections/items/{what}"
                work = closed_loop(where, path, bodies, clients, seconds / _TURNS, what)
                spent[what].append(report(work, server)["server_ms_per_request"])
    finally:
        echo.terminate()
        echo.wait()
        sink.wait()
    ratio = np.median(spent["echo"]) / np.median(spent["search"])
    print(json.dumps({"what": "searches per echo, by processor time of the server", "ratio": round(ratio, 2)}))


def report(work, process):
    """Print a measurement with the processor time of the server, which depends less on what else the machine does."""
    before = processor_seconds(process)
    found = asyncio.run(work)
    spent = processor_seconds(process) - before
    found |= {"server_ms_per_request": round(1000 * spent / found["requests"], 3), "resident_mb": resident_mb(process)}
    print(json.dumps(found), flush=True)
    return found


def processor_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
