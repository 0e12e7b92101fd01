"""Claims: what people say of speculative decoding, each with the study that tests it, its effect and a verdict.

registry    the twelve: `CLAIMS`
studies     the studies they share: `studies_for`
runner      decodes them, resumable, and distils each cell (needs torch)
evidence    what a study leaves behind to judge by: totals by cell and prompt, and by place in the output
sample      its prompts drawn anew: every figure with its draws
claim       `Claim`, `Finding`, and the rule of the verdict
acceptance, speed, lengths    what each claim measures;  settings: what these share
findings    all claims judged on a folder, kept in findings.json

from specworkbench.experiments.claims import judge_folder
for finding in judge_folder(data_dir() / "claims" / "embedded"):
    print(finding.claim, finding.verdict, finding.sentence)
"""

from specworkbench.experiments.claims.claim import FAILS, HOLDS, OPEN, UNMEASURED, VERDICTS, Claim, Finding
from specworkbench.experiments.claims.findings import evidence_in, judge, judge_folder
from specworkbench.experiments.claims.registry import CLAIMS, claims_named
from specworkbench.experiments.claims.studies import studies_for

__all__ = [
    "CLAIMS", "FAILS", "HOLDS", "OPEN", "UNMEASURED", "VERDICTS", "Claim", "Finding", "claims_named", "evidence_in",
    "judge", "judge_folder", "studies_for",
]  # fmt: skip
