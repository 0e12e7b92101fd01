"""Correct synthetic traces: the token rule (or greedy) simulated honestly in numpy from explicit p and q.

from tests.trace.toy import toy_trace
trace = toy_trace(gamma=3)                              # the default pair, two buckets of three prompts
trace = toy_trace([0.5, 0.5], [0.9, 0.1], gamma=2)      # rows that do not depend on the context
plain = toy_trace(proposer="none")
"""

from __future__ import annotations

import numpy as np

from specworkbench.trace import Trace, TraceBuilder, schema

TARGET = np.array(
    [[0.40, 0.30, 0.20, 0.10], [0.10, 0.50, 0.25, 0.15], [0.25, 0.25, 0.10, 0.40], [0.70, 0.05, 0.20, 0.05]]
)
"""(vocabulary, vocabulary): row i is p after token i. The default target."""
DRAFT = np.array(
    [[0.30, 0.35, 0.15, 0.20], [0.20, 0.30, 0.40, 0.10], [0.25, 0.20, 0.15, 0.40], [0.50, 0.10, 0.30, 0.10]]
)
"""The default draft, likewise."""

TOP_K = 2


def toy_trace(
    target=TARGET,
    draft=DRAFT,
    *,
    gamma: int = 3,
    buckets: tuple[str, ...] = ("code", "prose"),
    per_bucket: int = 3,
    max_new_tokens: int = 24,
    seed: int = 0,
    rule: str = "token",
    proposer: str = "draft_model",
    misses: float = 0.0,
    eos_ids: tuple[int, ...] = (),
    capture: str = "none",
    ms_target: float = 10.0,
    ms_draft: float = 1.0,
) -> Trace:
    """A trace that every contract passes.

    target, draft: (vocabulary,) one row for every context, or (vocabulary, vocabulary) a row for each last token.
    proposer: "draft_model", or "none" for plain decoding. misses: share of rounds without a guess.
    """
    pair = _square(target), _square(draft)
    simulation = _Simulation(*pair, gamma, rule, proposer, misses, capture, ms_target, ms_draft)
    prompts = [(f"{bucket}-{i}", bucket) for bucket in buckets for i in range(per_bucket)]
    sequences = []
    for index, (name, bucket) in enumerate(prompts):
        rng = np.random.default_rng([seed, index])
        prompt = rng.integers(len(simulation.target), size=4).tolist()
        output, reason, spent = simulation.decode(index, prompt, max_new_tokens, eos_ids, rng)
        sequences.append(
            {
                "id": name, "bucket": bucket, "prompt": _text(prompt), "prompt_tokens": prompt, "token_ids": output,
                "text": _text(output), "stop_reason": reason, "seed": seed,
                "ms_prefill": 12.0, "ms_draft_prefill": 1.5, "ms_total": 13.5 + spent + 0.25,
            }
        )  # fmt: skip
    manifest = _manifest(simulation, gamma, seed, rule, capture, proposer, eos_ids, max_new_tokens, sequences)
    return simulation.builder.build(manifest, simulation.full_rows())


class _Simulation:
    def __init__(self, target, draft, gamma, rule, proposer, misses, capture, ms_target, ms_draft):
        if rule == "greedy":
            target, draft = (np.eye(len(rows))[rows.argmax(axis=1)] for rows in (target, draft))
        self.target, self.draft, self.gamma, self.rule = target, draft, gamma, rule
        self.plain, self.misses, self.capture = proposer == "none", misses, capture
        self.ms_target, self.ms_draft = ms_target, ms_draft
        self.builder = TraceBuilder()
        self.rows, self.known = {"target": [], "draft": []}, {}

    def decode(self, index, prompt, limit, eos_ids, rng):
        """Tokens, stop reason and ms of one sequence, its rounds recorded on the way."""
        output, spent, number = [], 0.0, 0
        while True:
            gamma = 0 if self.plain else self.gamma
            asked = min(gamma, limit - len(output) - 1)
            proposed = 0 if rng.random() < self.misses else asked
            last = (prompt + output)[-1]
            tokens, columns, rows = self._round(last, proposed, rng)
            accepted = columns["outcome"].count("accepted")
            committed = [*tokens[:accepted], tokens[-1]]
            ends = [i for i, token in enumerate(committed) if token in eos_ids]
            kept = committed[: ends[0] + 1] if ends else committed
            length = len(prompt) + len(output)
            round_row = self._round_row(index, number, length, gamma, asked, proposed, accepted, len(kept), rng)
            self._record(round_row, tokens, columns, rows, accepted, len(kept), len(output))
            output, spent, number = output + kept, spent + round_row["ms_total"], number + 1
            if ends or len(output) == limit:
                return output, "eos" if ends else "length", spent

    def _round(self, last, proposed, rng):
        """Draw, judge and draw again: tokens, their columns, and the rows of positions 1..proposed + 1.

        A row is named by the token before it and whether the draft has one too.
        """
        tokens, u_draws, rows = [], [], []
        for _ in range(proposed):
            rows.append((last, True))
            u_draws.append(rng.random())
            last = _draw(self.draft[last], u_draws[-1])
            tokens.append(last)
        rows.append((last, False))
        judged = zip(tokens, rows[:proposed], strict=True)
        probs = [min(1.0, self.target[at, token] / self.draft[at, token]) for token, (at, _) in judged]
        u = [rng.random() for _ in tokens]
        flags = [a < b for a, b in zip(u, probs, strict=True)]
        accepted = flags.index(False) if False in flags else proposed
        p, q = self._probs(rows[accepted])
        residual = p if q is None else np.maximum(p - q, 0)
        u_draws.append(rng.random())
        tokens.append(_draw(residual / residual.sum(), u_draws[-1]))
        fate = ["accepted"] * accepted + ["rejected"] + ["discarded"] * proposed
        drawn = "plain" if not proposed else "bonus" if accepted == proposed else "corrected"
        null = [np.nan] * (proposed + 1)
        random = self.rule == "token"
        columns = {
            "outcome": [*fate[:proposed], drawn],
            "accept_prob": [*probs, np.nan],
            "u": [*u, np.nan] if random else null,
            "u_draw": u_draws if random else null,
        }
        return tokens, columns, rows

    def _round_row(self, index, number, length, gamma, asked, proposed, accepted, emitted, rng):
        noise = 1 + 0.05 * rng.random(4)
        phases = noise * [self.ms_draft * proposed, self.ms_target * (1 + 0.05 * proposed), 0.1, 0.05]
        cached = length + emitted - 1
        return {
            "sequence": index, "round": number, "context_length": length, "gamma": gamma, "asked": asked,
            "shortened": "budget" if asked < gamma else "", "proposed": proposed,
            "examined": min(accepted + 1, proposed), "accepted": accepted, "verdict_length": accepted + 1,
            "emitted": emitted, "ms_propose": phases[0], "ms_verify": phases[1], "ms_accept": phases[2],
            "ms_rollback": phases[3], "ms_total": phases.sum() + 0.02, "target_positions": proposed + 1,
            "draft_forwards": proposed, "draft_positions": proposed, "target_cache_tokens": cached,
            "target_cache_bytes": 64 * cached, "draft_cache_bytes": 0 if self.plain else 16 * cached,
        }  # fmt: skip

    def _record(self, round_row, tokens, columns, rows, accepted, emitted, done):
        proposed = len(tokens) - 1
        node = np.append(np.arange(proposed), -1)
        position = np.append(np.arange(proposed), accepted) + 1
        place = np.append(np.where(node[:-1] < accepted, node[:-1], emitted), accepted)
        figures = [self._figures(token, rows[i - 1]) for token, i in zip(tokens, position, strict=True)]
        columns |= {name: [row[name] for row in figures] for name in figures[0]}
        columns |= {
            "node": node, "parent": np.append(np.arange(proposed) - 1, accepted - 1), "position": position,
            "depth": position, "token": tokens, "emitted": place < emitted,
            "output_index": np.where(place < emitted, done + place, np.nan),
        }  # fmt: skip
        records = self._distributions(rows, tokens, position)
        columns |= {name: [round_row[name]] * len(tokens) for name in ("sequence", "round")}
        distributions = None
        if records is not None:
            distributions = {name: [record[name] for record in records] for name in records[0]}
            distributions |= {name: [round_row[name]] * len(records) for name in ("sequence", "round")}
        self.builder.add_rounds({name: [value] for name, value in round_row.items()}, columns, distributions)

    def _figures(self, token, row):
        """What follows from a token and its row; computed once, as there are few of both."""
        if (token, row) not in self.known:
            self.known[token, row] = _figures(token, *self._probs(row))
        return self.known[token, row]

    def _probs(self, row):
        """p and q after a token; q is None where nothing was proposed."""
        last, drafted = row
        return self.target[last], self.draft[last] if drafted else None

    def _distributions(self, rows, tokens, position):
        if self.capture == "none":
            return None
        records = []
        for number, row in enumerate(rows, start=1):
            p, q = self._probs(row)
            key = {"position": number, "node": -1 if number == len(rows) else number - 1}
            if self.capture == "full":
                records.append(key | {"row": len(self.rows["target"])})
                self.rows["target"].append(p)
                self.rows["draft"].append(np.full(len(p), np.nan) if q is None else q)
                continue
            drawn = [token for token, i in zip(tokens, position, strict=True) if i == number]
            kept = {*np.argsort(-p)[:TOP_K], *drawn, *([] if q is None else np.argsort(-q)[:TOP_K])}
            kept = np.array(sorted(kept, key=lambda token, p=p: (-p[token], token)))
            records.append(key | {"tokens": kept, "p": p[kept], "q": None if q is None else q[kept]})
        return records

    def full_rows(self):
        return {name: np.array(rows) for name, rows in self.rows.items()} if self.capture == "full" else None


def _figures(token, p, q):
    """The columns that follow from a token and its rows."""
    null = np.nan
    figures = {
        "p": p[token], "q": null, "overlap": null, "tv": null, "residual_mass": null, "entropy_p": _entropy(p),
        "entropy_q": null, "rank_p": 1 + (p > p[token]).sum(), "rank_q": null, "overweight_p": null,
        "overweight_q": null, "in_overweight": null,
    }  # fmt: skip
    if q is None:
        return figures
    heavy = q > p
    return figures | {
        "q": q[token], "overlap": np.minimum(p, q).sum(), "tv": 0.5 * np.abs(p - q).sum(),
        "residual_mass": np.maximum(p - q, 0).sum(), "entropy_q": _entropy(q), "rank_q": 1 + (q > q[token]).sum(),
        "overweight_p": p[heavy].sum(), "overweight_q": q[heavy].sum(), "in_overweight": float(heavy[token]),
    }  # fmt: skip


def _entropy(row):
    return float(-(row[row > 0] * np.log(row[row > 0])).sum())


def _draw(row, u):
    """Inverse CDF: the first token whose cumulative probability exceeds u, never one of probability 0."""
    return int(min(np.searchsorted(np.cumsum(row), u, side="right"), np.flatnonzero(row)[-1]))


def _square(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return rows if rows.ndim == 2 else np.tile(rows, (len(rows), 1))


def _text(tokens):
    return "".join(chr(ord("a") + token) for token in tokens)


def _manifest(simulation, gamma, seed, rule, capture, proposer, eos_ids, max_new_tokens, sequences):
    size = len(simulation.target)
    sampling = {
        "temperature": 1.0 if rule == "token" else 0.0, "top_k": None, "top_p": None, "min_p": None,
        "repetition_penalty": None,
    }  # fmt: skip

    def model(name, parameters):
        return {
            "name": name, "revision": None, "dtype": "float64", "parameters": parameters, "vocab_size": size,
            "max_context": 4096,
        }  # fmt: skip

    return {
        "schema_version": schema.SCHEMA_VERSION, "created": "2026-01-01T00:00:00+00:00",
        "library": {"specworkbench": "0", "torch": None, "transformers": None, "python": "3.11"},
        "device": "cpu", "clock": "perf_counter", "target": model("toy", 1000),
        "proposer": {
            "name": proposer, "deterministic": rule == "greedy", "settings": {},
            "draft": None if proposer == "none" else model("toy-draft", 100),
        },
        "rule": {"name": rule, "lossless": True}, "gamma": gamma, "seed": seed, "capture": capture,
        "top_k_captured": TOP_K, "sampling": sampling, "draft_sampling": dict(sampling), "chat_template": False,
        "generation_config_applied": False, "eos_ids": list(eos_ids), "stop": [], "max_new_tokens": max_new_tokens,
        "vocabulary": {str(token): _text([token]) for token in range(size)}, "sequences": sequences,
    }  # fmt: skip
