"""What was recorded of a run: tables, files, and the checks a trace must pass. No torch.

Manifest keys (a JSON object; absent numbers are null, never NaN):

    schema_version              int, `schema.SCHEMA_VERSION` of the writer
    created                     ISO-8601 time, UTC
    library                     versions: {specworkbench, torch, transformers, python}
    device                      "cpu", "cuda: NVIDIA H200", ...
    clock                       what timed the phases: "perf_counter" or "cuda events"
    target                      {name, revision, dtype, parameters, vocab_size, max_context, forward: "fused" |
                                 "transformers", whose code computed its rows, products: null where torch's own were
                                 used, else {threads, packed_bytes: what copies of weights add, forms: {"OUTxIN" of a
                                 weight: "turned_blocks 1, turned 2-3, packed 4+", by number of rows, after "in lanes
                                 where compiled" if compiled steps read a copy in lanes}}; absent in older traces}
    proposer                    {name: as `specworkbench proposers` lists them, deterministic: bool, settings: {...},
                                 draft: as target, or null; some say more of themselves}
    rule                        {name: as `specworkbench rules` lists them, lossless: bool, settings: {...}}; older
                                traces have no settings, and no rule that takes any
    gamma                       tokens proposed per round that the settings wanted
    seed                        of all random streams
    capture, top_k_captured     "none" | "top-k" | "full", and how many tokens of each row "top-k" kept
    sampling, draft_sampling    {temperature, top_k, top_p, min_p, repetition_penalty} of target and draft
    chat_template               whether the prompts went through the model's chat template
    generation_config_applied   whether the model's own generation_config was applied
    eos_ids, stop               token ids and strings that end a sequence
    max_new_tokens              limit on the tokens of each sequence
    min_new_tokens              so many tokens are out before EOS may come; absent (0) in older traces
    vocabulary                  {token id as text: the token's text}, for every id in any table; a token that is a part
                                of a UTF-8 character has its raw bytes as text, such as "\\xe4"
    sequences                   one object a sequence: {id, bucket, prompt, prompt_tokens, token_ids (the output), text,
                                stop_reason, seed, ms_prefill (target), ms_draft_prefill, ms_total (the whole sequence,
                                prefill included)}
"""

from specworkbench.trace import contracts, schema
from specworkbench.trace.builder import TraceBuilder
from specworkbench.trace.store import load_trace, save_trace, trace_bytes
from specworkbench.trace.trace import Distribution, Trace

__all__ = ["Trace", "Distribution", "TraceBuilder", "load_trace", "save_trace", "trace_bytes", "schema", "contracts"]
