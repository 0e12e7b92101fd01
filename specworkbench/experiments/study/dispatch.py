"""Cells to workers and outcomes back; a cell whose worker dies is decoded again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from time import monotonic

from specworkbench import __version__
from specworkbench.errors import InputError
from specworkbench.experiments.bench import Stop
from specworkbench.experiments.study.executors import Executor
from specworkbench.experiments.study.task import Task
from specworkbench.experiments.study.worker import Outcome, failure

TRIES = 3
"""How often a cell is begun before it counts as one that kills its workers, and a worker before none can start."""

POLL_SECONDS = 0.2
PATIENCE_SECONDS = 60.0

Tell = Callable[[str], None]
"""Told, in a sentence, what happens beside the cells."""


def dispatch(
    executor: Executor, tasks: Sequence[Task], *, stop: Stop = lambda: False, tell: Tell = lambda sentence: None
) -> Iterator[Outcome]:
    """The outcomes of tasks, as they are finished, each once.

    stop: asked all the time; once it says yes, what is being decoded is given up. A cell whose worker dies is put back
    and decoded again, at most `TRIES` times in all; then it has failed. Raises `InputError` where a worker cannot start
    or is of another version of this program.
    """
    return _Dispatch(executor, tasks, stop, tell).run()


def first_of(futures: Collection[Future], stop: Stop, tell: Tell) -> Future:
    """The first of what was asked to be done. Raises `KeyboardInterrupt` once `stop` says yes."""
    patience = _Patience(tell)
    while True:
        done, _ = wait(futures, POLL_SECONDS, FIRST_COMPLETED)
        if done:
            return done.pop()
        if stop():
            raise KeyboardInterrupt
        patience(heard=False)


def first_to_begin(executor: Executor, stop: Stop, tell: Tell) -> int:
    """The place of the first worker that has begun; those that die before are replaced. Raises as `dispatch` does."""
    greetings = {executor.ask(place, "greet"): place for place in range(executor.places)}
    deaths: Counter[int] = Counter()
    while True:
        first = first_of(greetings, stop, tell)
        place = greetings.pop(first)
        if not isinstance(error := first.exception(), executor.LOST):
            check_greeting(first)
            return place
        if _replaced(executor, place, deaths, error, others=bool(greetings), tell=tell):
            greetings[executor.ask(place, "greet")] = place


def _replaced(
    executor: Executor, place: int, deaths: Counter[int], error: BaseException, others: bool, tell: Tell
) -> bool:
    """A new worker where one has died as it began; False where that has happened so often that it is given up.

    Raises `InputError` where there are no others.
    """
    deaths[place] += 1
    if deaths[place] < TRIES:
        executor.replace(place)
        return True
    said = f"a worker died {TRIES} times as it began: {last_line(error)}"
    if not others:
        raise InputError(said) from error
    tell(f"{said}; the others go on without it")
    return False


def check_greeting(greeting: Future) -> None:
    """Raises `InputError` where a worker cannot begin, or has another version of this program."""
    try:
        who = greeting.result()
    except Exception as error:
        raise InputError(f"a worker cannot begin: {last_line(error)}") from error
    if who["version"] != __version__:
        raise InputError(
            f"the worker on {who['host']} has specworkbench {who['version']}, and this is {__version__}; install the "
            "same version everywhere"
        )


class _Patience:
    """Says now and then that nobody has begun, as on a cluster without a free GPU."""

    def __init__(self, tell: Tell):
        self.tell, self.since = tell, monotonic()

    def __call__(self, heard: bool) -> None:
        if heard:
            self.since = monotonic()
        elif monotonic() - self.since > PATIENCE_SECONDS:
            self.since = monotonic()
            self.tell("still waiting for a worker to begin; is there room for one (a free GPU, or processor cores)?")


class _Dispatch:
    def __init__(self, executor: Executor, tasks: Sequence[Task], stop: Stop, tell: Tell):
        self.executor, self.stop, self.tell = executor, stop, tell
        self.waiting = list(tasks)
        self.loaded: dict[int, tuple] = {}
        self.free: set[int] = set()
        self.asked: dict[Future, tuple[int, Task | None]] = {}
        self.begun: Counter[str] = Counter()
        self.deaths: Counter[int] = Counter()

    def run(self) -> Iterator[Outcome]:
        for place in range(self.executor.places if self.waiting else 0):
            self._greet(place)
        patience = _Patience(self.tell)
        while self.waiting or any(task for _, task in self.asked.values()):
            if self.stop():
                self.executor.stop()
                return
            self._give_out()
            done, _ = wait(self.asked, POLL_SECONDS, FIRST_COMPLETED)
            patience(heard=bool(done) or any(task for _, task in self.asked.values()))
            for future in done:
                place, task = self.asked.pop(future)
                if isinstance(error := future.exception(), self.executor.LOST):
                    outcome = self._lost(place, task, error)
                else:
                    outcome = check_greeting(future) if task is None else future.result()
                    self.free.add(place)
                if outcome is not None:
                    yield outcome

    def _give_out(self) -> None:
        """A cell for every free place that there is one for."""
        for place in sorted(self.free):
            if not self.waiting:
                return
            task = self._next(place)
            self.waiting.remove(task)
            self.free.remove(place)
            self.loaded[place] = task.cell.models
            self.begun[task.id] += 1
            self.asked[self.executor.ask(place, "decode", task)] = place, task

    def _next(self, place: int) -> Task:
        """Of the cells that wait the first whose models are loaded there, else whose models nobody has, else any."""
        others = {models for at, models in self.loaded.items() if at != place}
        return min(
            self.waiting,
            key=lambda task: (task.cell.models != self.loaded.get(place), task.cell.models in others),
        )

    def _greet(self, place: int) -> None:
        self.asked[self.executor.ask(place, "greet")] = place, None

    def _lost(self, place: int, task: Task | None, error: BaseException) -> Outcome | None:
        """A new worker where one has died; its cell is put back, or has failed."""
        self.loaded.pop(place, None)
        if task is None:
            others = bool(self.asked or self.free)
            if _replaced(self.executor, place, self.deaths, error, others, self.tell):
                self._greet(place)
            return None
        self.executor.replace(place)
        self._greet(place)
        if self.begun[task.id] >= TRIES:
            return failure(task, f"the process that decoded it died {TRIES} times, perhaps for want of memory")
        self.tell(f"a worker died while it decoded a cell ({task.name}); the cell is decoded again")
        self.waiting.insert(0, task)
        return None


def last_line(error: BaseException) -> str:
    """The last line: the others say where it happened."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1].strip()
