"""Structured text from a fixed seed: JSON, JSON Lines, CSV, logs, tables and configuration files.

Every document has regularities inside (ids that count up, e-mail addresses made from names, totals that are products,
times that only grow, requests that begin and end), so that a small model has something to learn beyond the syntax.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import random
from collections.abc import Callable

__all__ = ["document"]

FIRST = (
    "Ada Alan Barbara Carl Chen Clara David Dennis Edsger Elena Emmy Erik Fatima Frances Grace Hana Hedy Ivan "
    "James Joan John Julia Karen Ken Kofi Leslie Linus Lucia Maria Marta Mei Miguel Nadia Niklaus Noor Olga "
    "Omar Paul Priya Radia Rosa Samuel Sofia Tariq Tim Vera Wei Yuki Zoe"
).split()
LAST = (
    "Adams Allen Bauer Becker Brown Castro Chen Cohen Costa Davis Diaz Evans Fischer Garcia Gupta Haddad "
    "Hansen Hopper Ito Ivanov Jones Kaya Kim Kumar Larsen Lee Lopez Martin Mensah Miller Moreau Nguyen Novak "
    "Okafor Olsen Park Patel Perez Ritchie Rossi Sato Schmidt Silva Singh Smith Tanaka Turing Wang Weber "
    "Wilson Wright Young"
).split()
CITIES = {
    "Berlin": "DE", "Paris": "FR", "Madrid": "ES", "Rome": "IT", "Vienna": "AT", "Oslo": "NO", "Lisbon": "PT",
    "Dublin": "IE", "London": "GB", "Tokyo": "JP", "Seoul": "KR", "Mumbai": "IN", "Lagos": "NG", "Cairo": "EG",
    "Lima": "PE", "Boston": "US", "Chicago": "US", "Toronto": "CA", "Sydney": "AU", "Zurich": "CH",
}  # fmt: skip
PRODUCTS = {
    "keyboard": 49.0, "mouse": 19.5, "monitor": 229.0, "laptop": 999.0, "headset": 79.9, "webcam": 59.0, "cable": 7.5,
    "charger": 24.9, "desk lamp": 34.0, "notebook": 3.2, "pencil": 0.8, "backpack": 64.0, "chair": 149.0,
    "router": 89.0, "speaker": 45.5, "tablet": 329.0,
}  # fmt: skip
SERVICES = (
    "auth billing cache catalog gateway indexer mailer metrics orders payments scheduler search sessions storage"
).split()
WORDS = (
    "alpha amber arctic atlas beacon cedar cobalt delta ember falcon harbor jade lotus maple nova onyx orbit "
    "pine quartz river"
).split()
UNITS = {
    "temperature": ("C", 15, 30),
    "humidity": ("%", 30, 70),
    "pressure": ("hPa", 990, 1030),
    "voltage": ("V", 218, 242),
}
PATHS = [
    "/",
    "/index.html",
    "/login",
    "/logout",
    "/api/users",
    "/api/orders",
    "/api/items",
    "/static/app.js",
    "/static/style.css",
]

Record = dict[str, object]


def _start(rng: random.Random) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=rng.randrange(2 * 365 * 86400))


def users(rng: random.Random, n: int) -> list[Record]:
    """People whose e-mail is made from their name and whose country follows from the city."""
    first_id, domain, rows = rng.randrange(1, 900), rng.choice(WORDS) + rng.choice([".com", ".org", ".net"]), []
    for i in range(n):
        first, last, city = rng.choice(FIRST), rng.choice(LAST), rng.choice(list(CITIES))
        rows.append({
            "id": first_id + i, "name": f"{first} {last}", "email": f"{first.lower()}.{last.lower()}@{domain}",
            "age": rng.randrange(18, 80), "city": city, "country": CITIES[city], "active": rng.random() < 0.8,
        })  # fmt: skip
    return rows


def orders(rng: random.Random, n: int) -> list[Record]:
    """Order lines whose total is quantity times the product's fixed price."""
    first_id, day, rows = rng.randrange(1000, 9000), _start(rng).date(), []
    for i in range(n):
        product, quantity = rng.choice(list(PRODUCTS)), rng.randrange(1, 6)
        day += datetime.timedelta(days=rng.randrange(2))
        rows.append({
            "order_id": first_id + i, "date": day.isoformat(), "product": product, "quantity": quantity,
            "unit_price": PRODUCTS[product], "total": round(quantity * PRODUCTS[product], 2),
            "status": rng.choice(["pending", "paid", "shipped", "shipped", "delivered", "cancelled"]),
        })  # fmt: skip
    return rows


def readings(rng: random.Random, n: int) -> list[Record]:
    """Sensor readings at a fixed interval that drift slowly."""
    kind = rng.choice(list(UNITS))
    unit, low, high = UNITS[kind]
    when, step, value = _start(rng).replace(second=0), rng.choice([1, 5, 10, 15, 60]), rng.uniform(low, high)
    sensor, rows = f"{kind[:4]}-{rng.randrange(1, 30):02d}", []
    for i in range(n):
        value += rng.uniform(-0.5, 0.5)
        stamp = (when + datetime.timedelta(minutes=i * step)).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows.append({"timestamp": stamp, "sensor": sensor, "kind": kind, "value": round(value, 1), "unit": unit})
    return rows


def servers(rng: random.Random, n: int) -> list[Record]:
    """Machines numbered within a site, addresses counting up in one subnet."""
    site, subnet, base = rng.choice(list(CITIES)).lower(), rng.randrange(256), rng.randrange(2, 200)
    service, rows = rng.choice(SERVICES), []
    for i in range(n):
        cpu = rng.choice([4, 8, 16, 32])
        rows.append({
            "host": f"{service}-{i + 1:02d}.{site}.example.com", "ip": f"10.0.{subnet}.{base + i}", "role": service,
            "cpus": cpu, "memory_gb": 4 * cpu, "status": rng.choice(["up", "up", "up", "up", "down", "draining"]),
        })  # fmt: skip
    return rows


def results(rng: random.Random, n: int) -> list[Record]:
    """Training curves: steps at a fixed interval, loss that falls, accuracy that rises, rate that decays."""
    step, loss, accuracy, rate, rows = (
        rng.choice([10, 50, 100, 500]),
        rng.uniform(2, 6),
        rng.uniform(0.1, 0.4),
        0.001,
        [],
    )
    for i in range(n):
        loss, accuracy = loss * rng.uniform(0.8, 0.98), accuracy + (0.98 - accuracy) * rng.uniform(0.05, 0.25)
        rows.append(
            {"step": (i + 1) * step, "loss": round(loss, 3), "accuracy": round(accuracy, 3), "rate": round(rate, 6)}
        )
        rate *= 0.9
    return rows


def files(rng: random.Random, n: int) -> list[Record]:
    """A listing of files whose kind follows from the ending."""
    kinds = {".py": "source", ".md": "document", ".csv": "data", ".png": "image", ".log": "log", ".toml": "config"}
    folder, rows = rng.choice(WORDS), []
    for _ in range(n):
        ending = rng.choice(list(kinds))
        name = f"{rng.choice(WORDS)}_{rng.choice(SERVICES)}{ending}"
        rows.append(
            {
                "path": f"{folder}/{name}",
                "kind": kinds[ending],
                "bytes": rng.randrange(100, 90000),
                "owner": rng.choice(FIRST).lower(),
            }
        )
    return sorted(rows, key=lambda row: row["path"])


SCHEMAS: dict[str, Callable[[random.Random, int], list[Record]]] = {
    "users": users, "orders": orders, "readings": readings, "servers": servers, "results": results, "files": files,
}  # fmt: skip


def _records(rng: random.Random) -> tuple[str, list[Record]]:
    name = rng.choice(list(SCHEMAS))
    rows = SCHEMAS[name](rng, rng.randrange(4, 16))
    keys = list(rows[0])
    if rng.random() < 0.4:  # some tables lack a column or two
        for key in rng.sample(keys, rng.randrange(1, 3)):
            keys.remove(key)
    return name, [{key: row[key] for key in keys} for row in rows]


def json_document(rng: random.Random) -> str:
    """One indented object with a count and a list of records, or the bare list."""
    name, rows = _records(rng)
    if name == "users" and rng.random() < 0.5:
        rows = [row | {"tags": sorted(rng.sample(WORDS, rng.randrange(0, 4)))} for row in rows]
    whole = rng.choice([rows, {name: rows}, {"version": 1, "count": len(rows), name: rows}])
    return json.dumps(whole, indent=rng.choice([2, 2, 4])) + "\n"


def jsonl_document(rng: random.Random) -> str:
    """One record a line."""
    return "".join(json.dumps(row) + "\n" for row in _records(rng)[1])


def csv_document(rng: random.Random) -> str:
    """A header and one record a line, comma or semicolon."""
    rows = _records(rng)[1]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=rng.choice(",,,;"), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def markdown_document(rng: random.Random) -> str:
    """A heading and a Markdown table whose columns are padded to their widest cell."""
    name, rows = _records(rng)
    cells = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return f"## {name.capitalize()}\n\n" + "\n".join(lines) + f"\n\n{len(rows)} rows\n"


def aligned_document(rng: random.Random) -> str:
    """Columns aligned by spaces, as a terminal prints them."""
    rows = _records(rng)[1]
    cells = [[key.upper() for key in rows[0]], *([str(value) for value in row.values()] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    return "".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() + "\n" for row in cells
    )


def service_log(rng: random.Random) -> str:
    """Requests of one service: each begins, works and ends with a status that fits its level."""
    when, service, request, lines = _start(rng), rng.choice(SERVICES), rng.randrange(1000, 9000), []
    for _ in range(rng.randrange(4, 10)):
        request += 1
        user, path, failed = rng.choice(FIRST).lower(), rng.choice(PATHS[2:7]), rng.random() < 0.15
        end = f"failed status={rng.choice([500, 502, 503])}" if failed else "finished status=200"
        steps = [
            ("INFO", f"started user={user} path={path}"),
            ("DEBUG", f"{rng.choice(['cache hit', 'cache miss', 'query ok'])} path={path}"),
            ("ERROR" if failed else "INFO", f"{end} duration={rng.randrange(2, 400)}ms"),
        ]
        for level, message in steps:
            when += datetime.timedelta(milliseconds=rng.randrange(1, 900))
            stamp = when.strftime("%Y-%m-%d %H:%M:%S,") + f"{when.microsecond // 1000:03d}"
            lines.append(f"{stamp} {level:<5} [{service}] request={request} {message}\n")
    return "".join(lines)


def access_log(rng: random.Random) -> str:
    """Lines of a web server in the common log format."""
    when, hosts, lines = _start(rng), [f"192.168.{rng.randrange(4)}.{rng.randrange(2, 250)}" for _ in range(3)], []
    for _ in range(rng.randrange(8, 22)):
        when += datetime.timedelta(seconds=rng.randrange(1, 40))
        path = rng.choice(PATHS)
        method, status = (
            ("POST", rng.choice([200, 201, 400]))
            if path == "/login"
            else ("GET", rng.choice([200, 200, 200, 304, 404]))
        )
        stamp = when.strftime("%d/%b/%Y:%H:%M:%S +0000")
        lines.append(
            f'{rng.choice(hosts)} - - [{stamp}] "{method} {path} HTTP/1.1" {status} {rng.randrange(100, 9000)}\n'
        )
    return "".join(lines)


def ini_document(rng: random.Random) -> str:
    """Sections of services with the same keys, ports counting up."""
    port, lines = rng.randrange(3, 60) * 100, []
    for i, service in enumerate(rng.sample(SERVICES, rng.randrange(2, 6))):
        lines += [
            f"[{service}]", f"host = {service}.example.com", f"port = {port + i}",
            f"workers = {rng.choice([1, 2, 4, 8])}", f"timeout = {rng.choice([5, 10, 30, 60])}",
            f"log_file = /var/log/{service}.log", f"debug = {rng.choice(['yes', 'no'])}", "",
        ]  # fmt: skip
    return "\n".join(lines)


def toml_document(rng: random.Random) -> str:
    """A project description, then tables of services."""
    name, (first, last) = f"{rng.choice(WORDS)}-{rng.choice(SERVICES)}", (rng.choice(FIRST), rng.choice(LAST))
    lines = [
        "[project]", f'name = "{name}"', f'version = "{rng.randrange(4)}.{rng.randrange(12)}.{rng.randrange(9)}"',
        f'authors = ["{first} {last} <{first.lower()}@example.com>"]', f'homepage = "https://example.com/{name}"', "",
    ]  # fmt: skip
    port = rng.randrange(30, 90) * 100
    for i, service in enumerate(rng.sample(SERVICES, rng.randrange(2, 5))):
        lines += [
            f"[services.{service}]", f'image = "{name}/{service}:latest"', f"port = {port + i}",
            f"replicas = {rng.randrange(1, 5)}", f"enabled = {rng.choice(['true', 'true', 'false'])}", "",
        ]  # fmt: skip
    return "\n".join(lines)


KINDS: dict[str, Callable[[random.Random], str]] = {
    "json": json_document, "jsonl": jsonl_document, "csv": csv_document, "markdown": markdown_document,
    "log": service_log, "json2": json_document, "aligned": aligned_document, "access": access_log, "ini": ini_document,
    "toml": toml_document,
}  # fmt: skip


def document(split: str, index: int) -> tuple[str, str]:
    """(kind, text) of generated document `index` of `split` ("train" or "heldout"): the same on every machine.

    >>> kind, text = document("train", 0)
    >>> (kind, text) == document("train", 0)
    True
    """
    kind = list(KINDS)[index % len(KINDS)]
    return kind.rstrip("2"), KINDS[kind](random.Random(f"specworkbench {split} {index}"))
