"""The words of `specworkbench costs`: tables of what was measured, and how near it comes to what the machine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from specworkbench.cli.screen import figure, printable, screen

if TYPE_CHECKING:
    from rich.table import Table

    from specworkbench.experiments.costs.table import CostTable

MB, GIGA, MIB = 1e6, 1e9, 2**20


def show(found: CostTable) -> None:
    """The forwards as a table, the limit in sentences; where there were rounds, what they cost; memory."""
    forwards, limit, where = found.forwards, found.limit, found.environment
    names = ["context", "rows n", "T(n) ms", "interval", "v(n)", "interval"]
    names += ["weights MB", "cache MB", "memory ms", "arithmetic ms", "of bandwidth", "of floor"] if limit else []
    table = titled("{name}, {dtype}, forward: {forward}".format(**found.target), names)
    for row in forwards:
        table.add_row(*timed_cells(row), *(limit_cells(row) if limit else ()))
    console = screen()
    console.print(table)
    runs = min(row["runs"] for row in forwards)
    console.print(
        f"T(n): a forward over n rows, median of {runs} runs, interleaved; v(n) = T(n) / T(1); intervals 95 %.\n"
        f"{printable(str(where['cpu']))}, {where['threads']} threads; device {where['device']}."
    )
    if limit:
        console.print("\n".join(sentences(forwards, limit)))
    if found.steps:
        console.print(steps_table(found.steps))
        console.print(proposers_table(found.proposers))
        console.print(
            "step: the target's part of a round, its rows and the rule included; c: ms per proposed token over the "
            "step of one row;\no: rollback and loop over the same; batch size 1, temperature 1."
        )
        console.print(prefill_table(found.proposers))
    console.print("\n".join(memory_sentences(found)))


def titled(title: str, names: list[str]) -> Table:
    """An empty table whose columns are numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=printable(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, justify="right")
    return table


def steps_table(steps: list[dict[str, Any]]) -> Table:
    names = ["context", "rows n", "step ms", "interval", "v(n)", "interval", "rollback ms", "loop ms"]
    table = titled("Rounds that verify n - 1 random guesses", names)
    for row in steps:
        table.add_row(*timed_cells(row), figure(row["ms_rollback"]), figure(row["ms_loop"]))
    return table


def proposers_table(proposers: list[dict[str, Any]]) -> Table:
    names = ["context", "proposer", "gamma", "proposed", "ms/token", "c", "interval", "o", "interval", "step ms"]
    table = titled("Rounds of proposers", [*names, "rollback ms", "loop ms"])
    for row in proposers:
        table.add_row(
            str(row["context"]), printable(row["proposer"]), figure(row["gamma"]), figure(row["proposed"], 1),
            figure(row["ms_propose"], 2), figure(row["c"]) + (" (set)" if row["c_set"] else ""), between(row, "c"),
            figure(row["overhead"]), between(row, "overhead"), figure(row["ms_step"], 2), figure(row["ms_rollback"]),
            figure(row["ms_loop"]),
        )  # fmt: skip
    return table


def prefill_table(proposers: list[dict[str, Any]]) -> Table:
    names = ["context", "proposer", "target ms", "interval", "own ms", "interval", "own cache MB"]
    table = titled("Prefill of the context", names)
    for row in proposers:
        own = (figure(row["ms_draft_prefill"], 2), between(row, "ms_draft_prefill")) if row["gamma"] else ("–", "–")
        table.add_row(
            str(row["context"]), printable(row["proposer"]), figure(row["ms_prefill"], 2), between(row, "ms_prefill"),
            *own, figure(row["draft_cache_bytes"] / MB, 2) if row["gamma"] else "–",
        )  # fmt: skip
    return table


def memory_sentences(found: CostTable) -> list[str]:
    """Bytes of weights, and of the target's cache."""
    memory = found.memory
    weights = [f"target {held(memory['target'])}"]
    weights += [f"{printable(label)} {held(own)}" for label, own in memory["proposers"].items() if label != "none"]
    said = [f"Weights: {'; '.join(weights)}."]
    for cache in memory["caches"]:
        per_token = f"{cache['bytes_per_token'] / 1e3:.1f} kB a token"
        said.append(f"Target's cache after {cache['context']} tokens: {cache['cache_bytes'] / MB:.2f} MB, {per_token}.")
    return said


def held(weights: dict[str, int]) -> str:
    copies = f" and {weights['copy_bytes'] / MB:.1f} MB of copies" if weights["copy_bytes"] else ""
    return f"{weights['weight_bytes'] / MB:.1f} MB{copies}"


def timed_cells(row: dict[str, Any]) -> list[str]:
    ms, v = row["ms"], row["verify_cost"]
    return [
        str(row["context"]), str(row["rows"]), figure(ms, 2), between(row, "ms"), figure(v, 2),
        between(row, "verify_cost"),
    ]  # fmt: skip


def between(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "–" if low is None else f"{low:.2f}–{high:.2f}"


def limit_cells(row: dict[str, Any]) -> list[str]:
    return [
        figure(row["weight_bytes"] / MB, 2), figure(row["cache_bytes"] / MB, 2), figure(row["ms_memory"], 2),
        figure(row["ms_arithmetic"], 2), share(row["bandwidth_share"]), share(row["floor_share"]),
    ]  # fmt: skip


def share(value: float) -> str:
    return f"{100 * value:.0f} %"


def sentences(forwards: list[dict[str, Any]], limit: dict[str, Any]) -> list[str]:
    """How fast the machine reads and multiplies, and how near a step and the largest verification come to it."""
    memory, weights, products = limit["memory"], limit["weights"], limit["products"]
    last_level = limit["cache_bytes"]
    times = f", {memory['size'] / last_level:.0f} times the last-level cache" if last_level else ""
    said = [f"Memory is read at {measured(memory, 'GB/s')}, {buffer(memory)}{times}."]
    if weights:
        said.append(
            f"The weights are smaller and may stay in the cache: {buffer(weights)}, as large as they are, is read at "
            f"{measured(weights, 'GB/s')}. The faster of the two is the limit."
        )
    side = products["size"]
    said.append(f"Matrices of {side} x {side} are multiplied at {measured(products, 'Gflop/s')}.")
    said += [nearness(row, limit["bandwidth"]) for row in ends(forwards)]
    return said + ([f"Note: {limit['note']}."] if limit["note"] else [])


def ends(forwards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the first context the step and the forward of the most rows."""
    first = [row for row in forwards if row["context"] == forwards[0]["context"]]
    return first[:1] + first[1:][-1:]


def nearness(row: dict[str, Any], bandwidth: float) -> str:
    name = "A step" if row["rows"] == 1 else f"A verification of {row['rows']} rows"
    bytes_read = row["weight_bytes"] + row["cache_bytes"]
    return (
        f"{name} after {row['context']} tokens reads {bytes_read / MB:.1f} MB, {row['ms_memory']:.2f} ms at "
        f"{bandwidth / GIGA:.1f} GB/s; it takes {row['ms']:.2f} ms: {share(row['bandwidth_share'])} of the bandwidth."
    )


def measured(rate: dict[str, Any], unit: str) -> str:
    best, middle = rate["best"] / GIGA, rate["median"] / GIGA
    return f"{best:.1f} {unit} at best (median {middle:.1f}, {rate['runs']} runs)"


def buffer(rate: dict[str, Any]) -> str:
    return f"a buffer of {rate['size'] / MIB:.1f} MiB"
