"""The twelve claims. None is taken to be true: each is said somewhere, and tested here. No torch."""

from __future__ import annotations

from specworkbench.errors import InputError
from specworkbench.experiments.claims import acceptance, lengths, speed
from specworkbench.experiments.claims.claim import Claim, Region
from specworkbench.experiments.claims.settings import ALPHA_MARGIN, TIME_MARGIN

RULES_OF_THUMB = "rules of thumb of introductory articles"
FASTER, SLOWER = Region(low=1 - TIME_MARGIN), Region(high=1 - TIME_MARGIN)
"""Of a ratio of speeds: no slower than the margin allows; slower by more than the margin."""
MORE, LESS = Region(low=ALPHA_MARGIN), Region(high=-ALPHA_MARGIN)
"""Of a difference of alphas."""

CLAIMS = (
    Claim(
        "break-even",
        "A mean accepted length of 2 is the break-even: above it speculation gains, below it loses.",
        RULES_OF_THUMB,
        ("proposers",),
        "All proposers at gamma 4: how many tokens would a round have to emit to be as fast as plain decoding?",
        "time of a round, in plain steps: the tokens per round that break even",
        Region(1.75, 2.25),
        speed.break_even,
        "A round costs gamma c + v(gamma + 1) + o plain steps. That is 2 for one draft on one machine and not for "
        "another: it moves with the draft's size, with the price of more rows in a forward, and with gamma.",
    ),
    Claim(
        "gamma-3-to-5",
        "Gamma between 3 and 5 is best.",
        RULES_OF_THUMB,
        ("gamma",),
        "Gammas from 1 to 8, with a draft model, a head and look-up, at temperatures 0 and 1.",
        "speed of the best gamma of 3 to 5 over that of the best other one",
        FASTER,
        speed.gamma_three_to_five,
        "The best gamma grows with alpha and shrinks with c and with the price of more rows: cheap guesses that are "
        "mostly right want long rounds, dear ones short rounds.",
    ),
    Claim(
        "late-positions",
        "Acceptance falls late in long outputs.",
        RULES_OF_THUMB,
        ("long-outputs",),
        "Outputs of 512 tokens, end of text ignored: alpha in the last quarter of the output against the first.",
        "alpha in the last quarter of the output less alpha in the first",
        LESS,
        acceptance.late_against_early,
        "A target that drifts away from what its draft has learned would show it; one that repeats itself shows the "
        "opposite. Larger models, with a draft of a short context, may differ.",
        digits=3,
    ),
    Claim(
        "temperature",
        "Acceptance falls with temperature, and with a narrower top-p, where two nuclei need not match.",
        "Leviathan et al. 2023, Tables 2 and 3 (temperature 0 against 1); for top-p without a source",
        ("temperature", "top-p"),
        "Temperatures 0 to 1.5 with all tokens, and top-p 1 to 0.5 at temperature 1, for target and draft alike.",
        "change of alpha along the fitted line, from one end of the axis to the other",
        LESS,
        acceptance.by_sampling,
        "Flatter rows overlap more if both are flat in the same places, less if the draft is wrong in its tail. A "
        "draft that learned the target's distribution at temperature 1, as the embedded ones did, is at home there.",
        digits=3,
    ),
    Claim(
        "code-over-prose",
        "Code and structured text accept more than prose.",
        "Chen et al. 2023 (HumanEval gains more than XSum)",
        ("proposers",),
        "The same proposers on prompts of code, structured text and prose.",
        "alpha in code, or in structured text, less alpha in prose",
        MORE,
        acceptance.by_kind_of_text,
        "It is a matter of what draft and target have learned. Prose with a fixed manner is as easy as code.",
        digits=3,
    ),
    Claim(
        "draft-size",
        "A draft of 1/10 to 1/20 of the target is best.",
        RULES_OF_THUMB,
        ("proposers",),
        "Draft models of several sizes, and the target's own first layers, at gamma 4.",
        "speed of the best draft of that size over that of another",
        FASTER,
        speed.draft_size,
        "Trained drafts on both sides of the range, for a target whose time is arithmetic and reading, not dispatch.",
    ),
    Claim(
        "stronger-slower",
        "A stronger draft can be slower.",
        "Leviathan et al. 2023, Table 2 (T5-large accepts more than T5-small, and gains less)",
        ("proposers",),
        "Pairs of draft models, and pairs of heads, of which one accepts more.",
        "speed of the one that accepts more over that of the other",
        SLOWER,
        speed.stronger_and_slower,
        "If all drafts cost the same.",
        quantifier="some",
    ),
    Claim(
        "short-outputs",
        "Short outputs do not gain.",
        "said in practice, without a source",
        ("output-length",),
        "Outputs of 8, 32 and 128 tokens; both prefills count.",
        "speedup, prefills included, of 8 tokens",
        Region(high=1 + TIME_MARGIN),
        lengths.short_outputs,
        "What is paid once is the draft's prefill, and the last round's surplus: a proposer without a prefill has next "
        "to nothing to earn back.",
    ),
    Claim(
        "long-prompts",
        "A long prompt dilutes the gain.",
        "said in practice, without a source",
        ("prompt-length",),
        "Prompts of 32, 128 and 768 tokens; both prefills count.",
        "speedup behind long prompts over speedup behind short ones",
        SLOWER,
        lengths.long_prompts,
        "The longer the output, the less a prefill weighs; and look-up finds more in a longer prompt.",
    ),
    Claim(
        "quantised-target",
        "Quantising the target shrinks the gain.",
        "said in practice, without a source",
        ("quantisation",),
        "The target's weights in int8 and as they are, the draft's as they are.",
        "speedup over the quantised target, over that over the target as it is",
        SLOWER,
        lengths.quantised_target,
        "A target whose time is reading its weights becomes faster in int8, so that the same draft costs more of its "
        "steps. The embedded target's time is dispatch.",
    ),
    Claim(
        "retrieval",
        "Retrieval beats a small model on repetitive text.",
        "Spec-Bench (prompt look-up gains more than a draft model on Vicuna-7B)",
        ("proposers",),
        "N-gram and suffix look-up against draft models, on prompts whose plain output mostly repeats what was there.",
        "speed of look-up over that of a draft model",
        Region(low=1 + TIME_MARGIN),
        speed.retrieval_on_repetition,
        "A draft as cheap as a look-up, or text that repeats itself with changes.",
    ),
    Claim(
        "acceptance-alone",
        "The acceptance rate alone does not rank proposers.",
        "Leviathan et al. 2023, Table 2; Spec-Bench (accepted length against speedup)",
        ("proposers",),
        "The proposer that accepts the largest share against every one that accepts less.",
        "speed of the proposer that accepts most over that of another",
        SLOWER,
        speed.most_accepted_against_others,
        "If all proposers cost the same, and proposed in every round.",
        quantifier="some",
    ),
)


def claims_named(names: str | None) -> tuple[Claim, ...]:
    """The claims of 'NAME,NAME', in the order of `CLAIMS`; all for None. Raises `InputError` for an unknown name.

    >>> [claim.statement for claim in claims_named("retrieval,draft-size")]
    ['A draft of 1/10 to 1/20 of the target is best.', 'Retrieval beats a small model on repetitive text.']
    """
    wanted = [name.strip() for name in (names or "").split(",") if name.strip()]
    known = [claim.name for claim in CLAIMS]
    for name in wanted:
        if name not in known:
            raise InputError(f"there is no claim {name!r}; there are {', '.join(known)}")
    return tuple(claim for claim in CLAIMS if not wanted or claim.name in wanted)
