"""Studies from files: TOML and Python say the same, and what is wrong with a file is told with its name."""

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import Study, load_study
from specworkbench.experiments.study.example import EXAMPLE

PYTHON = "from specworkbench.experiments.study import Study\n"


@pytest.fixture
def written(tmp_path):
    def write(text, suffix=".toml"):
        path = tmp_path / f"grid{suffix}"
        path.write_text(text)
        return path

    return write


def test_toml_and_python_say_the_same(written):
    toml = written('proposer = ["ngram", "suffix, min_prob=0"]\ngamma = [1, 2]\nignore_eos = true\n')
    python = written(
        PYTHON + 'study = Study(proposer=["ngram", "suffix,min_prob=0"], gamma=range(1, 3), ignore_eos=True)', ".py"
    )
    assert load_study(toml) == load_study(python)
    assert load_study(toml) == Study(proposer=("ngram", "suffix,min_prob=0"), gamma=(1, 2), ignore_eos=True)


def test_the_example_is_a_study_and_so_is_all_that_it_leaves_out(written):
    study = load_study(written(EXAMPLE))
    assert set(study.varying) == {"proposer", "gamma", "temperature", "bucket"} and study.per_bucket == 2
    known = [line for line in EXAMPLE.splitlines() if line.startswith("# ") and " = " in line]
    given = "\n".join(line.removeprefix("# ") for line in known)
    assert len(known) >= 10
    assert load_study(written('proposer = ["ngram"]\n' + given)).device == "cuda"


@pytest.mark.parametrize(
    "text, suffix, says",
    [
        ("gamma = [1\n", ".toml", "this is no TOML: Unclosed array"),
        ('proposer = "ngram"\nspeed = 3\n', ".toml", "no key 'speed'"),
        ('proposer = "crystal_ball"\n', ".toml", "no proposer 'crystal_ball'"),
        ('proposer = "ngram,min_m=3"\n', ".toml", "no setting 'min_m'"),
        ('proposer = "none"\n', ".toml", "baseline of every cell"),
        ('proposer = "ngram"\nrule = "best"\n', ".toml", "no rule 'best'"),
        ('proposer = "ngram"\nrule = "lenient,leniency=much"\n', ".toml", "leniency"),
        ('proposer = "ngram"\ntemperature = -1\n', ".toml", "temperature is -1"),
        ('proposer = "ngram"\ntop_p = 0\n', ".toml", "top_p is 0"),
        ("x = 1\n", ".py", "does not define study"),
        ("study = {'gamma': 3}\n", ".py", "has study = {'gamma': 3}; it must hold study = Study"),
        ("x = 1\nraise ValueError('no')\n", ".py", r"fails when run: ValueError: no \(line 2\)"),
        ("import sys\nsys.exit(3)\n", ".py", "fails when run: SystemExit: 3"),
        ("study = (\n", ".py", "fails when run: SyntaxError"),
        (PYTHON + "study = Study(proposer='ngram', gamma=[])\n", ".py", "gamma is an empty list"),
        ("x", ".json", "ends in .toml or .py"),
    ],
)
def test_what_is_wrong_is_told_with_the_name_of_the_file(written, text, suffix, says):
    with pytest.raises(InputError, match=says) as refused:
        load_study(written(text, suffix))
    assert f"grid{suffix}" in str(refused.value)


def test_a_file_that_is_not_there_or_no_text_is_a_sentence(tmp_path):
    for name in ("none.toml", "none.py"):
        with pytest.raises(InputError, match="there is no study file"):
            load_study(tmp_path / name)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        load_study(tmp_path / "bytes.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        load_study(tmp_path / "folder.toml")
