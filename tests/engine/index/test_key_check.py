"""The key check reads nothing where nobody else has committed."""

import numpy as np

from lakewarden.engine.conflicts.conflicts import ObservedInstants
from lakewarden.engine.index.key_check import KeyCheck, NewKeys, Witness
from lakewarden.engine.run.ports import Ports
from lakewarden.engine.storage.memory import fresh_memory_storage
from lakewarden.engine.write.distributed_rows import RowPreparation
from tests.engine.transaction.hooked import Hook
from tests.writing.model import SCHEMA
from tests.writing.shapes import Shape


def test_alone_a_write_pays_nothing_for_the_check() -> None:
    storage = fresh_memory_storage()
    table = Shape(index="RECORD_INDEX").create("", storage=storage)
    table.upsert([{"id": "a", "p": "x", "ts": 1, "v": 1.0, "name": "n"}])
    state, hook, ports = table.state(), Hook(1, lambda: None), Ports()
    fitting = RowPreparation(
        properties=dict(state.config.properties),
        schema=state.schema(),
        deletes=False,
        partition_matters=True,
    )
    witness = Witness(
        storage=hook.storage(storage),
        config=state.config,
        executor=ports.executor,
        clock=ports.clock,
        asks_index=True,
    )
    new = NewKeys(fitting.fit(SCHEMA.empty_table()), np.zeros(0, np.int64), is_global=True)
    check = KeyCheck(witness, new, ObservedInstants.of(state.timeline.active), "20990101000000000")
    assert check.passes_briefly(state.timeline.active)
    assert hook.calls == 0
