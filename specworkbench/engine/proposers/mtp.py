"""Multi-token prediction: modules trained with the target to give the tokens after the next."""

from __future__ import annotations

from specworkbench.engine.heads.feature import FeatureHead
from specworkbench.engine.loading import EMBEDDED
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers.feature_head import FeatureHeadProposer


class MtpProposer(FeatureHeadProposer):
    """Modules on the target's last hidden state, sharing its embedding and output matrix.

    Several are chained, one a guess (DeepSeek-V3, GLM-4.5); one is used again and again (Qwen3-Next, MiMo). Where no
    draft is named they are looked for in the target's own checkpoint.
    """

    name = "mtp"
    kind = "mtp"
    summary = "multi-token prediction modules, chained on the target's last hidden state"
    paper = "DeepSeek-AI 2024; Gloeckle et al. 2024"
    weights = "MTP modules of this target"
    default_weights = "embedded/mtp"

    @classmethod
    def default_for(cls, target: str) -> str | None:
        """The target's own checkpoint, where the modules lie that it was trained with."""
        own = target and not target.startswith(f"{EMBEDDED}/") and not target.endswith(".gguf")
        return super().default_for(target) or (target if own else None)

    @classmethod
    def load(cls, weights: str, target: LanguageModel, revision: str | None = None) -> FeatureHead:
        if weights == target.name:
            revision = revision or target.revision
        return super().load(weights, target, revision)
