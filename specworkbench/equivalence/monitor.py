"""`Monitor`: watches the rounds of real decoding and keeps what tests of the sampler need, as `Evidence`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from specworkbench.engine.round import Round
from specworkbench.equivalence.evidence import ALTERNATIVES, CELLS, Evidence

RowsOf = Callable[[Round], torch.Tensor]
"""The target's rows (n + 1, vocab) of a round, by which its tokens are to be judged."""

RANKS = (1, 4, 16)
"""The last rank of each cell but the last."""


def overlap(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """(m,) acceptance of one guess from q under the ratio rule: sum_x min(p, q)."""
    return torch.minimum(p, q).sum(-1)


def match(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """(m,) acceptance under equality: sum_x p q."""
    return (p * q).sum(-1)


EXPECTED_ACCEPT = {"token": overlap, "greedy": overlap, "tree": overlap, "equality": match}
"""What a rule must accept of a position's first guess on average; rules that are not here decide on more than that."""


def amounts(kind: str) -> list[float]:
    """The amounts of one kind of alternative."""
    return [float(name.rsplit(" ", 1)[1]) for name in ALTERNATIVES if name.startswith(f"{kind} ")]


class Monitor:
    """An observer of rounds (`on_round` of `Decoder.run`): a row of evidence a token that reached the output.

    rule: the name of the rule that the rounds claim to follow; rows: the rows to judge by, those that the rule was
    given unless told otherwise. Rows are reduced at once and never kept.

    >>> from specworkbench.engine import decode_rounds
    >>> from specworkbench.equivalence import table_setup
    >>> setup, monitor = table_setup(length=8), Monitor("token")
    >>> for step in decode_rounds(setup.start(setup.streams(seed=0))):
    ...     monitor(step)
    >>> len(monitor.take()), len(monitor.take())
    (8, 0)
    """

    def __init__(self, rule: str, rows: RowsOf | None = None):
        self._expected = EXPECTED_ACCEPT.get(rule)
        self._rows = rows or (lambda step: step.target_probs)
        self._parts: list[Evidence] = []

    def __call__(self, step: Round) -> None:
        self._parts.append(self.evidence(step))

    def take(self) -> Evidence:
        """What came since the last call."""
        parts, self._parts = self._parts, []
        return Evidence.concatenate(parts) if parts else NOTHING

    @torch.inference_mode()
    def evidence(self, step: Round) -> Evidence:
        """The evidence of one round."""
        decision, m = step.decision, step.decision.emitted
        after = [-1, *decision.nodes][:m]  # the node that each token follows
        guesses = [_first_child(node, decision.parents, len(decision.proposed)) for node in after]
        guided = np.array([guess >= 0 for guess in guesses])
        device = step.target_probs.device
        p = self._rows(step)[torch.tensor(after, device=device) + 1]
        tokens = torch.tensor(step.emitted, device=device)
        if guided.any():
            q = step.proposal.draft_probs(p)[torch.tensor(guesses, device=device)]  # that of -1 counts for nothing
        else:
            q = p
        drawn, declared = _reduced(p, q, tokens)
        n_a = np.where(guided, 0.0, np.nan)
        heavy, cells, cell = _cells(drawn, declared, guided)
        accepted = np.array([node == guess for node, guess in zip([*decision.nodes, -2][:m], guesses, strict=True)])
        expected = np.full(m, np.nan) if self._expected is None else self._expected(p, q).cpu().numpy() + n_a
        return Evidence(
            sequence=np.full(m, step.sequence, dtype=np.int64),
            round=np.full(m, step.index, dtype=np.int64),
            slot=np.arange(1, m + 1),
            guided=guided,
            token=np.array(step.emitted, dtype=np.int64),
            p=drawn["p"],
            log_ratios=_log_ratios(drawn, declared, guided),
            overweight_p=heavy + n_a,
            in_overweight=(drawn["q"] > drawn["p"]) + n_a,
            expected_accept=expected,
            accepted=np.where(np.isnan(expected), np.nan, accepted),
            cell=cell,
            cell_probs=cells,
        )


def _first_child(node: int, parents: list[int] | None, proposed: int) -> int:
    """The guess that is tried first after a node (-1: the context); -1 where there is none."""
    if parents is None:
        return node + 1 if node + 1 < proposed else -1
    return parents.index(node) if node in parents else -1


def _reduced(p: torch.Tensor, q: torch.Tensor, tokens: torch.Tensor) -> tuple[dict, dict]:
    """Figures of the drawn tokens, and of the rows, as numpy arrays (m,), and (m, 4) of masses by rank."""
    at = tokens.unsqueeze(-1)
    top = p.topk(min(RANKS[-1], p.shape[-1]), dim=-1).values
    bounds = [top[:, min(rank, top.shape[-1]) - 1 : min(rank, top.shape[-1])] for rank in RANKS]
    own_p, own_q = p.gather(-1, at), q.gather(-1, at)
    before = torch.cat([own_p[:1], p[:-1].gather(-1, at[1:])])
    drawn = {
        "p": own_p, "q": own_q, "before": before, "best": p.argmax(-1, keepdim=True) == at,
        "band": sum((own_p < bound).long() for bound in bounds),
    }  # fmt: skip
    heavier = torch.where(q > p, p, 0.0)
    within = [torch.stack([mass.sum(-1), *(torch.where(p >= bound, mass, 0.0).sum(-1) for bound in bounds)], dim=-1)
              for mass in (heavier, p)]  # fmt: skip
    logs = p.log()
    declared = {
        "overlap": overlap(p, q),
        "heavier": within[0],
        "all": within[1],
        **{f"from q {w}": ((1 + w) * p - w * q).clamp_(min=0.0).sum(-1) for w in amounts("from q")},
        **{f"temperature {heat}": (logs / heat).exp_().sum(-1) for heat in amounts("temperature")},
    }
    return (
        {name: value.squeeze(-1).cpu().numpy() for name, value in drawn.items()},
        {name: value.cpu().numpy() for name, value in declared.items()},
    )


def _cells(drawn: dict, declared: dict, guided: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p of the overweight set (m,), the mass of every cell (m, 8), and the cell of the drawn token (m,)."""
    guided = guided[:, None]

    def bands(columns: np.ndarray) -> np.ndarray:
        """From (m, 4) [all, up to rank 1, up to 4, up to 16] to the mass of each band of ranks."""
        upto = np.concatenate([columns[:, 1:], columns[:, :1]], axis=-1)
        return np.diff(upto, axis=-1, prepend=0.0)

    heavy = np.where(guided, bands(declared["heavier"]), 0.0)
    cells = np.concatenate([heavy, bands(declared["all"]) - heavy], axis=-1).clip(min=0.0)
    lighter = ~(guided[:, 0] & (drawn["q"] > drawn["p"]))
    return heavy.sum(-1), cells, drawn["band"] + lighter * (len(CELLS) // 2)


def _log_ratios(drawn: dict, declared: dict, guided: np.ndarray) -> np.ndarray:
    """(m, len(ALTERNATIVES)) log r(x)/p(x); see `ALTERNATIVES`."""
    p = drawn["p"]
    with np.errstate(divide="ignore", invalid="ignore"):
        q, shared = drawn["q"] / p, declared["overlap"]
        towards = {
            "to q": np.where(guided, q, 1.0),
            "to overlap": np.where(guided & (shared > 0), np.minimum(1.0, q) / shared, 1.0),
            "to argmax": drawn["best"] / p,
            "to row before": drawn["before"] / p,
        }

        def ratio(alternative: str) -> np.ndarray:
            kind, amount = alternative.rsplit(" ", 1)
            w = float(amount)
            if kind == "temperature":
                return p ** (1 / w - 1) / declared[f"temperature {w}"]
            if kind == "from q":
                return np.where(guided, np.clip(1 + w - w * q, 0.0, None) / declared[f"from q {w}"], 1.0)
            return 1 - w + w * towards[kind]

        ratios = np.log(np.stack([ratio(alternative) for alternative in ALTERNATIVES], axis=-1))
    return np.where(p[:, None] > 0, ratios, np.inf)


NOTHING = Evidence(
    *(np.zeros(0, dtype=np.int64) for _ in range(3)), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), np.zeros(0),
    np.zeros((0, len(ALTERNATIVES))), *(np.zeros(0) for _ in range(4)), np.zeros(0, dtype=np.int64),
    np.zeros((0, len(CELLS))),
)  # fmt: skip
"""Evidence of no token."""
