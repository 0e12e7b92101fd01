"""Real speculative decoding on torch and transformers: models, sampling, caches, proposers, rules, the decode loop."""

from specworkbench.engine.contracts import Context, Decision, Needs, Proposal, Proposer, Verdict, Verifier
from specworkbench.engine.controllers import CONTROLLERS, Controller, make_controller
from specworkbench.engine.loading import check_same_vocabulary, embedded_names, load_model, load_pair
from specworkbench.engine.loop import DecodeSettings, Sequence, decode_rounds
from specworkbench.engine.models import LanguageModel
from specworkbench.engine.proposers import PROPOSERS, make_proposer
from specworkbench.engine.recording import TraceRecorder
from specworkbench.engine.round import Round
from specworkbench.engine.run import Decoder, DecodeResult, decode
from specworkbench.engine.sampling import Sampler, SamplingSettings
from specworkbench.engine.verifiers import VERIFIERS, make_verifier

__all__ = [
    "CONTROLLERS", "PROPOSERS", "VERIFIERS", "Context", "Controller", "DecodeResult", "DecodeSettings", "Decision",
    "Decoder", "LanguageModel", "Needs", "Proposal", "Proposer", "Round", "Sampler", "SamplingSettings", "Sequence",
    "TraceRecorder", "Verdict", "Verifier", "check_same_vocabulary", "decode", "decode_rounds", "embedded_names",
    "load_model", "load_pair", "make_controller", "make_proposer", "make_verifier",
]  # fmt: skip
