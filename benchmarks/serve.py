"""Load on a service from outside, over loopback: clients that search at a steady rate, and one that writes.

    python benchmarks/serve.py --items 100000 --seconds 60

Starts ``starshl serve`` on a new collection of random vectors with a StarRidge of 3,000 rows, then measures, in this
order: steady searches beside a writer, searches as fast as a number of clients can, and a bare echo of FastAPI as fast
as they can. Prints one line of JSON per measurement.
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
import sys, uvicorn
from fastapi import FastAPI, Request
app = FastAPI()
@app.post("/")
async def echo(body: dict): return body
uvicorn.run(app, port=int(sys.argv[1]), http="h11", access_log=False, log_level="error")
"""


def make_collection(folder, n_items, n_train, n_columns, n_bits):
    from starshl import Collection, StarRidge

    rng = np.random.default_rng(0)
    centers = rng.standard_normal((10, n_columns)) * 2
    y = rng.integers(0, 10, n_train)
    hasher = StarRidge(n_bits, random_state=0).fit(centers[y] + rng.standard_normal((n_train, n_columns)), y)
    with Collection.create(folder, hasher) as collection:
        for _ in range(0, n_items, 5000):
            n = min(5000, n_items - len(collection))
            collection.add(centers[rng.integers(0, 10, n)] + rng.standard_normal((n, n_columns)))
    return centers[rng.integers(0, 10, 1000)] + rng.standard_normal((1000, n_columns))


def start(command, *, until):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if until in line:
            break
    # Somebody has to read the log, or the service would wait for it.
    sink = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
    return process, sink, line


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
    times, errors = [], []
    loop = asyncio.get_running_loop()
    headers = {"Content-Type": "application/json"}

    async def client(http, number):
        end = loop.time() + seconds
        while loop.time() < end:
            number += 1
            began = loop.time()
            response = await http.post(path, content=bodies[number % len(bodies)])
            times.append(loop.time() - began)
            if response.status_code != 200:
                errors.append(response.status_code)

    limits = httpx.Limits(max_connections=None, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=30, headers=headers) as http:
        await asyncio.gather(*(client(http, 7 * number) for number in range(clients)))
    return summary(what, times, errors, seconds)


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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        vectors = make_collection(Path(place) / "items", options.items, options.train, options.columns, options.bits)
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
            asyncio.run(closed_loop(address, path, bodies, 4, 3, "warm up"))
            work = steady(address, bodies, vectors, options.clients, options.rate, options.writes, options.seconds)
            report(work, process)
            report(closed_loop(address, path, bodies, options.clients, options.closed_seconds, "closed loop"), process)
        finally:
            process.terminate()
            process.wait()
            sink.wait()
    echo = subprocess.Popen([sys.executable, "-c", ECHO, "18765"], env=os.environ)
    try:
        time.sleep(5)
        report(
            closed_loop("http://127.0.0.1:18765", "/", bodies, options.clients, options.closed_seconds, "echo"), echo
        )
    finally:
        echo.terminate()
        echo.wait()


def report(work, process):
    """Print a measurement with the processor time of the server, which depends less on what else the machine does."""
    before = processor_seconds(process)
    found = asyncio.run(work)
    spent = processor_seconds(process) - before
    status = Path(f"/proc/{process.pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    found |= {"server_ms_per_request": round(1000 * spent / found["requests"], 2), "resident_mb": int(resident) // 1024}
    print(json.dumps(found), flush=True)


def processor_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
