"""The conditional create: what each kind of answer means."""

from collections.abc import Callable

from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.storage.conditional import CONFLICT_ATTEMPTS_MAX, ConditionalCreate
from lakewarden.engine.storage.port import Creation, Lost, Unknown, Won


class ServiceError(OSError):
    """What a client library raises for an answer of the service."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


class Store:
    """One object that is created at most once; `answers` go wrong in turn before it behaves."""

    def __init__(
        self, content: bytes | None = None, answers: tuple[Callable[["Store"], None], ...] = ()
    ) -> None:
        self.content = content
        self.requests = 0
        self.answers = list(answers)

    def create(self, payload: bytes, conditional: ConditionalCreate | None = None) -> Creation:
        def request() -> None:
            self.requests += 1
            if self.answers:
                self.answers.pop(0)(self)
            if self.content is not None:
                raise FileExistsError
            self.content = payload

        return (conditional or ConditionalCreate()).create(payload, request, self.read)

    def read(self) -> bytes | None:
        return self.content


def conflict(store: Store) -> None:
    raise ServiceError("ConditionalRequestConflict")


def write_and_break(store: Store) -> None:
    store.content = b"mine"
    raise ConnectionError


def break_off(store: Store) -> None:
    raise ConnectionError


def test_a_first_win_is_asked_for_twice() -> None:
    conditional = ConditionalCreate()
    first, second = Store(), Store()
    assert first.create(b"mine", conditional) == Won()
    assert second.create(b"mine", conditional) == Won()
    assert (first.requests, second.requests) == (2, 1)


def test_a_proof_that_broke_off_is_repeated_at_the_next_win() -> None:
    conditional = ConditionalCreate()
    first, second = Store(answers=(lambda store: None, break_off)), Store()
    assert first.create(b"mine", conditional) == Won()
    assert second.create(b"mine", conditional) == Won()
    assert second.requests == 2


def test_a_store_that_ignores_the_condition_is_no_judge() -> None:
    answer = ConditionalCreate().create(b"mine", lambda: None, lambda: b"mine")
    assert isinstance(answer, Unknown)
    assert "ignores the condition" in answer.cause


def test_a_retry_refused_because_of_itself_is_won() -> None:
    assert Store(b"mine").create(b"mine") == Won()


def test_a_precondition_that_failed_is_a_refusal() -> None:
    def refuse(store: Store) -> None:
        raise ServiceError("PreconditionFailed")

    assert Store(b"theirs", (refuse,)).create(b"mine") == Lost(b"theirs")
    assert Store(b"", (refuse,)).create(b"") == Lost(b"")


def test_a_broken_answer_is_judged_by_what_is_there() -> None:
    assert Store(answers=(write_and_break,)).create(b"mine") == Won()
    assert Store(b"theirs", (break_off,)).create(b"mine") == Lost(b"theirs")
    assert isinstance(Store(answers=(break_off,)).create(b"mine"), Unknown)


def test_an_empty_file_after_a_broken_answer_is_unknown() -> None:
    assert isinstance(Store(b"", (break_off,)).create(b""), Unknown)


def test_an_unreadable_outcome_is_unknown() -> None:
    def read() -> bytes | None:
        raise Unavailable("storage_unavailable", what="Cannot read.", why="No route.")

    def request() -> None:
        raise ConnectionError

    answer = ConditionalCreate().create(b"mine", request, read)
    assert isinstance(answer, Unknown)
    assert "No route" in answer.cause


def test_a_file_gone_after_the_refusal_is_unknown() -> None:
    def refuse(store: Store) -> None:
        raise FileExistsError

    assert isinstance(Store(answers=(refuse,)).create(b"mine"), Unknown)


def test_a_conflict_is_tried_again() -> None:
    assert Store(answers=(conflict, conflict)).create(b"mine") == Won()


def test_endless_conflicts_end_unknown() -> None:
    store = Store(answers=(conflict,) * 100)
    assert isinstance(store.create(b"mine"), Unknown)
    assert store.requests == CONFLICT_ATTEMPTS_MAX
