"""The corpus of the embedded family: what every Python carries, and generated text; split by file name.

Three buckets: code (sources of the standard library), prose (documentation topics and docstrings), structured
(generated). Held-out documents are chosen by a hash of the file's name, so that a module, its C-less twin and its tests
(`decimal`, `_pydecimal`, `test_decimal`) stay on one side; docstrings follow their file. No torch here.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import sysconfig
import warnings
from dataclasses import dataclass
from pathlib import Path

from specworkbench.training import structured

__all__ = [
    "Document", "Corpus", "share_of", "split_key", "is_heldout", "library_files", "docstrings", "topics",
    "without_shared_lines", "generated_documents",
]  # fmt: skip

BUCKETS = ("code", "prose", "structured")
HELDOUT_SHARE = 0.05  # of file names
HELDOUT_TOPICS = 0.12  # of documentation topics
TEST_SHARE = 0.2  # of test files kept: they are more than half of the library's bytes
LARGEST_FILE = 250_000  # bytes
LONG_LINE = 30  # characters: lines at least this long are compared between the two sides
LARGEST_OVERLAP = 0.3  # share of a held-out document's long lines that may occur in training
SKIPPED = re.compile(
    r"site-packages|lib2to3/tests/data|encodings/|_sysconfigdata|pydoc_data|config-3|/bad|lib-dynload|__pycache__"
)
TRAIN_GENERATED, HELDOUT_GENERATED = 9000, 240  # documents


@dataclass(frozen=True)
class Document:
    """One text with its origin (a path in the library, a topic, or a generated kind and index).

    >>> Document("topic if", "prose", "The if statement", heldout=False).bucket
    'prose'
    """

    name: str
    bucket: str
    text: str
    heldout: bool


@dataclass(frozen=True)
class Corpus:
    """All documents, in a fixed order.

    >>> Corpus((Document("topic if", "prose", "The if statement", False),)).texts("prose", heldout=False)
    ['The if statement']
    """

    documents: tuple[Document, ...]

    def texts(self, bucket: str, heldout: bool) -> list[str]:
        """Texts of one bucket on one side of the split."""
        return [doc.text for doc in self.documents if doc.bucket == bucket and doc.heldout == heldout]


def share_of(text: str) -> float:
    """A number in [0, 1) that depends on the text alone.

    >>> share_of("decimal") == share_of("decimal"), 0 <= share_of("decimal") < 1
    (True, True)
    """
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def split_key(path: str) -> str:
    """The name that decides the side, one for `test_decimal`, `_pydecimal`, `decimal`; `__init__` has the folder's.

    >>> split_key("test/test_decimal.py"), split_key("_pydecimal.py"), split_key("json/__init__.py")
    ('decimal', 'decimal', 'json')
    """
    parts = path.removesuffix(".py").split("/")
    stem = parts[-2] if parts[-1] in ("__init__", "__main__") and len(parts) > 1 else parts[-1]
    return re.sub(r"^(_+|test_?|py)+|_+$|_?tests?$", "", stem) or stem


def is_heldout(path: str, share: float = HELDOUT_SHARE) -> bool:
    """True when the file (or topic) of this name is kept apart.

    >>> is_heldout("decimal.py") == is_heldout("_pydecimal.py") == is_heldout("test/test_decimal.py")
    True
    """
    return share_of("heldout " + split_key(path)) < share


def library_files(root: Path | None = None) -> dict[str, str]:
    """{path relative to the standard library: source}, sorted; unreadable, huge, odd and most test files left out.

    >>> "dataclasses.py" in library_files()
    True
    """
    root = root or Path(sysconfig.get_paths()["stdlib"])
    sources = {}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if SKIPPED.search(name) or path.stat().st_size > LARGEST_FILE or path.stat().st_size < 200:
            continue
        if re.search(r"(^|/)tests?/|idle_test", name) and share_of("test " + name) > TEST_SHARE:
            continue
        try:
            text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            sources[name] = text
    return sources


def docstrings(source: str) -> list[str]:
    """Docstrings of a source of at least 80 characters, in order, each under the name of what it describes.

    >>> docstrings(f"def area(r): {'The area of a circle. ' * 5!r}")[0][:4]
    'area'
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text and len(text) >= 80:
                name = getattr(node, "name", None)
                found.append((getattr(node, "lineno", 0), (f"{name}: " if name else "") + inspect.cleandoc(text)))
    return [text for _, text in sorted(found)]


def topics() -> dict[str, str]:
    """The documentation topics that `help()` shows: {topic: text}.

    >>> sorted(topics())[:2]
    ['assert', 'assignment']
    """
    from pydoc_data.topics import topics as table

    return {name: table[name].strip("\n") + "\n" for name in sorted(table)}


def without_shared_lines(documents: list[Document]) -> list[Document]:
    """Drop held-out documents too many of whose long lines also occur in training documents of their bucket.

    >>> trained = Document("a", "code", "a line that both of them have in it", heldout=False)
    >>> without_shared_lines([trained, Document("b", "code", trained.text, heldout=True)]) == [trained]
    True
    """

    def long_lines(text: str) -> set[str]:
        return {line.strip() for line in text.splitlines() if len(line.strip()) >= LONG_LINE}

    trained = {bucket: set() for bucket in BUCKETS}
    for doc in documents:
        if not doc.heldout:
            trained[doc.bucket] |= long_lines(doc.text)
    kept = []
    for doc in documents:
        lines = long_lines(doc.text) if doc.heldout and doc.bucket != "structured" else set()
        if len(lines & trained[doc.bucket]) <= LARGEST_OVERLAP * len(lines):
            kept.append(doc)
    return kept


def library_documents(only_heldout: bool = False) -> list[Document]:
    """Code and prose documents of the running Python."""
    documents = []
    for name, text in library_files().items():
        heldout = is_heldout(name)
        if only_heldout and not heldout:
            continue
        documents.append(Document(name, "code", text, heldout))
        if prose := docstrings(text):
            documents.append(Document(name + " docstrings", "prose", "\n\n".join(prose) + "\n", heldout))
    for name, text in topics().items():
        heldout = is_heldout("topic " + name, HELDOUT_TOPICS)
        if heldout or not only_heldout:
            documents.append(Document("topic " + name, "prose", text, heldout))
    return documents


def generated_documents(split: str, count: int) -> list[Document]:
    """Structured documents of one split.

    >>> [document.bucket for document in generated_documents("heldout", 2)]
    ['structured', 'structured']
    """
    made = ((index, *structured.document(split, index)) for index in range(count))
    return [Document(f"{kind} {split} {index}", "structured", text, split == "heldout") for index, kind, text in made]


def collect() -> Corpus:
    """The whole corpus; about ten seconds."""
    documents = library_documents()
    documents += generated_documents("train", TRAIN_GENERATED) + generated_documents("heldout", HELDOUT_GENERATED)
    return Corpus(tuple(without_shared_lines(documents)))
