"""vLLM behind a pipe: runs in vLLM's own virtual environment and answers one request at a time.

    python vllm_server.py '{"model": FOLDER, "dtype": "float32", ...}'

The argument holds keywords of `vllm.LLM`. Every line on standard input is a JSON object {"prompt": [token ids],
"tokens", "temperature", "seed"}; every line on standard output one {"tokens", "seconds", "peak_memory"} (bytes, of this
process), after a first one {"version", "seconds"} once the engine is ready. `tokens` new tokens are decoded, EOS
ignored. What vLLM itself prints goes to standard error. It ends with its input.
"""

import json
import os
import resource
import sys
from time import perf_counter


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM logs to standard output

    def answer(**content) -> None:
        print(json.dumps(content), file=answers, flush=True)

    started = perf_counter()
    import vllm

    engine = vllm.LLM(**json.loads(sys.argv[1]))
    answer(version=vllm.__version__, seconds=perf_counter() - started)
    for line in sys.stdin:
        request = json.loads(line)
        sampling = vllm.SamplingParams(
            temperature=request["temperature"],
            seed=request["seed"],
            max_tokens=request["tokens"],
            ignore_eos=True,
        )
        started = perf_counter()
        outputs = engine.generate([{"prompt_token_ids": request["prompt"]}], sampling, use_tqdm=False)
        seconds = perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer(tokens=len(outputs[0].outputs[0].token_ids), seconds=seconds, peak_memory=peak)


if __name__ == "__main__":
    main()
