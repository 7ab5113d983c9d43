"""Hooks: something else happens right after a call of a storage, or before a task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from lakewarden.engine.run.executor import ResultT, TaskT
from lakewarden.engine.storage.port import Storage

_WITHOUT_CALL = ("uri",)


class Hook:
    """Something that happens once, after the call of a given number, and a count of all calls.

    With an operation and a path only such calls are counted.
    """

    def __init__(
        self, at: int, happening: Callable[[], object], *, of: tuple[str, str] | None = None
    ) -> None:
        self.calls = 0
        self._at = at
        self._happening = happening
        self._of = of

    @property
    def has_happened(self) -> bool:
        return self.calls >= self._at

    def storage(self, inner: Storage) -> Storage:
        """The same storage, whose calls are counted; folders of it count along."""
        return cast(Storage, _Hooked(inner, self))

    def called(self, operation: str, arguments: tuple[object, ...]) -> None:
        if self._of is not None and (operation, *arguments[:1]) != self._of:
            return
        self.calls += 1
        if self.calls == self._at:
            self._happening()


class _Hooked:
    def __init__(self, inner: Storage, hook: Hook) -> None:
        self._inner = inner
        self._hook = hook

    def below(self, folder: str) -> Storage:
        return self._hook.storage(self._inner.below(folder))

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if not callable(found) or name in _WITHOUT_CALL:
            return found

        def called(*arguments: object) -> object:
            result = found(*arguments)
            self._hook.called(name, arguments)
            return result

        return called


class PausingExecutor:
    """Does nothing for a while before tasks of some numbers; others do not stand still."""

    workers = 1

    def __init__(self, meanwhile: Mapping[int, Callable[[], None]]) -> None:
        self._meanwhile = dict(meanwhile)

    def map(
        self, function: Callable[[TaskT], ResultT], tasks: Sequence[TaskT]
    ) -> Iterator[ResultT]:
        for number, task in enumerate(tasks):
            self._meanwhile.pop(number, lambda: None)()
            yield function(task)
