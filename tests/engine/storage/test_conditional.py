"""The conditional create: what each kind of answer means."""

from collections.abc import Callable

from lakewarden.engine.kernel.errors import Unavailable
from lakewarden.engine.storage.object_store import CONFLICT_ATTEMPTS_MAX, ConditionalRequests
from lakewarden.engine.storage.port import Creation, Lost, Unknown, Versioned, Won


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

    def create(self, payload: bytes, conditional: ConditionalRequests | None = None) -> Creation:
        def request() -> None:
            self.requests += 1
            if self.answers:
                self.answers.pop(0)(self)
            if self.content is not None:
                raise FileExistsError
            self.content = payload

        return (conditional or ConditionalRequests()).create(payload, request, self.read)

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
    conditional = ConditionalRequests()
    first, second = Store(), Store()
    assert first.create(b"mine", conditional) == Won()
    assert second.create(b"mine", conditional) == Won()
    assert (first.requests, second.requests) == (2, 1)


def test_a_proof_that_broke_off_is_repeated_at_the_next_win() -> None:
    conditional = ConditionalRequests()
    first, second = Store(answers=(lambda store: None, break_off)), Store()
    assert first.create(b"mine", conditional) == Won()
    assert second.create(b"mine", conditional) == Won()
    assert second.requests == 2


def test_a_store_that_ignores_the_condition_is_no_judge() -> None:
    answer = ConditionalRequests().create(b"mine", lambda: None, lambda: b"mine")
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
        raise Unavailable("storage_unavailable", what="Cannot read.", why="No route.", now="Wait.")

    def request() -> None:
        raise ConnectionError

    answer = ConditionalRequests().create(b"mine", request, read)
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


class Replaceable:
    """One object with a version; `answers` go wrong in turn before it behaves."""

    def __init__(
        self, content: bytes, answers: tuple[Callable[["Replaceable"], None], ...] = ()
    ) -> None:
        self.content: bytes | None = content
        self.version = 1
        self.requests = 0
        self.answers = list(answers)

    def put(self, content: bytes) -> None:
        self.content = content
        self.version += 1

    def replace(self, payload: bytes) -> Creation:
        read = self.version

        def request() -> None:
            self.requests += 1
            if self.answers:
                self.answers.pop(0)(self)
            if self.version != read:
                raise ServiceError("PreconditionFailed")
            self.put(payload)

        return ConditionalRequests().replace(payload, str(read), request, self.state)

    def state(self) -> Versioned | None:
        return None if self.content is None else Versioned(self.content, str(self.version))


class TestReplacing:
    def test_a_first_win_is_asked_for_twice(self) -> None:
        store = Replaceable(b"old")
        assert store.replace(b"mine") == Won()
        assert (store.requests, store.version) == (2, 2)

    def test_a_store_that_ignores_the_condition_is_no_judge(self) -> None:
        requests = ConditionalRequests()
        answer = requests.replace(b"mine", "1", lambda: None, lambda: Versioned(b"mine", "2"))
        assert isinstance(answer, Unknown)

    def test_another_state_is_lost(self) -> None:
        store = Replaceable(b"old", (lambda one: one.put(b"theirs"),))
        assert store.replace(b"mine") == Lost(b"theirs")

    def test_a_broken_answer_after_the_effect_is_won(self) -> None:
        def write_and_break_off(store: Replaceable) -> None:
            store.put(b"mine")
            raise ConnectionError

        assert Replaceable(b"old", (write_and_break_off,)).replace(b"mine") == Won()

    def test_a_broken_request_may_still_arrive(self) -> None:
        def break_off(store: Replaceable) -> None:
            raise ConnectionError

        assert isinstance(Replaceable(b"old", (break_off,)).replace(b"mine"), Unknown)

    def test_a_broken_request_is_too_late_once_there_is_another_state(self) -> None:
        def overtaken(store: Replaceable) -> None:
            store.put(b"theirs")
            raise ConnectionError

        assert Replaceable(b"old", (overtaken,)).replace(b"mine") == Lost(b"theirs")

    def test_a_file_that_is_gone_is_unknown(self) -> None:
        def remove(store: Replaceable) -> None:
            store.content = None
            raise FileNotFoundError

        assert isinstance(Replaceable(b"old", (remove,)).replace(b"mine"), Unknown)

    def test_a_conflict_is_tried_again(self) -> None:
        def refuse(store: Replaceable) -> None:
            raise ServiceError("ConditionalRequestConflict")

        assert Replaceable(b"old", (refuse, refuse)).replace(b"mine") == Won()
