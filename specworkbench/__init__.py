"""A research workbench for speculative decoding.

`import specworkbench` is light: the names below are imported when first used, so that traces, theory, analysis,
plots and widgets work where torch is not installed. Only `engine`, and what stands on it, needs torch.
"""

from importlib import import_module

__version__ = "0.1.0"

SUBMODULES = (
    "theory",
    "trace",
    "workloads",
    "analysis",
    "engine",
    "equivalence",
    "experiments",
    "training",
    "plots",
    "widgets",
)
PUBLIC_NAMES = {  # name -> the submodule that defines it
    "decode": "engine",
    "load_model": "engine",
    "load_pair": "engine",
    "Trace": "trace",
    "load_trace": "trace",
}
ENGINE_PACKAGES = ("torch", "transformers", "tokenizers", "accelerate")

__all__ = ["__version__", *SUBMODULES, *PUBLIC_NAMES]


def __getattr__(name: str):
    if name in SUBMODULES:
        return _submodule(name)
    if name in PUBLIC_NAMES:
        value = getattr(_submodule(PUBLIC_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _submodule(name: str):
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name in ENGINE_PACKAGES:
            raise ModuleNotFoundError(
                f"specworkbench.{name} needs {error.name}, which is not installed: "
                "pip install 'specworkbench[engine]'.",
                name=error.name,
            ) from error
        raise
