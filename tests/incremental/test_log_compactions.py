"""Log compaction: what has changed is all that looking at everything would find, in any history.

Once on a toy table, to which everything happens, and once with real logs, which are written,
planned for, folded and cancelled.
"""

from random import Random

import pytest

from lakewarden.engine.file_groups.slices import FileGroupId
from lakewarden.engine.services.execution.execute import execute, pending_plans
from lakewarden.engine.services.log_compaction.service import BLOCKS_MIN, LOG_COMPACTION
from lakewarden.engine.services.planning.plan_request import Draft, PlanRequest
from lakewarden.engine.services.planning.schedule import draft, schedule
from lakewarden.engine.transaction.cancel.cancel import cancel
from lakewarden.engine.transaction.window.window import INCREMENTAL
from tests.engine.services.service_table import MOR, ServiceWorld, new_service_world, rows
from tests.incremental.compaction_cases import without_some
from tests.incremental.histories import CHUNKS, TIMES, Case, run_histories
from tests.incremental.planning_table import MOR as TOY
from tests.writing.model import Write

PLACES = "abcde"
STEPS = 14

CASE = Case(
    service=LOG_COMPACTION,
    settings={},
    choices=(*[{BLOCKS_MIN.key: "2"}] * 4, {BLOCKS_MIN.key: "3"}),
    properties=TOY,
    without_some=without_some,
    adds=0.1,
    # Only what was written to again and again is worth it.
    reach=7,
)


def found(
    world: ServiceWorld, plan_request: PlanRequest, blocks: int, *, incremental: bool
) -> tuple[frozenset[FileGroupId], bool]:
    """What a plan would take, and whether it has looked only at what has changed."""
    given = {INCREMENTAL.key: incremental, BLOCKS_MIN.key: blocks}
    settings = {key.replace(".", "__"): value for key, value in given.items()}
    drafted = draft(world.context(**settings), LOG_COMPACTION, plan_request)
    if isinstance(drafted, Draft):
        return drafted.groups, "Since the" in drafted.scope
    return frozenset(), "Since the" in drafted.why


def run_history(seed: int) -> int:
    """One history; how many plans looked only at what had changed."""
    random = Random(seed)
    world = new_service_world(MOR)
    world.write(Write("upsert", tuple(row for p in PLACES for row in rows([f"k{p}"], 1, p))))
    looked = 0
    for step in range(STEPS):
        places = random.sample(PLACES, random.randint(1, 2))
        updates = tuple(row for p in places for row in rows([f"k{p}"], step + 2, p))
        world.write(Write("upsert", updates))
        blocks = random.choice((2, 2, 2, 3))
        plan_request = PlanRequest(
            cancellable=random.random() < 0.5,
            max_file_groups=random.choice((None, 1, 2)),
            partitions=random.choice((None, None, tuple(f"p={p}" for p in "abc"))),
        )
        part, is_part = found(world, plan_request, blocks, incremental=True)
        full, _ = found(world, plan_request, blocks, incremental=False)
        assert part == full, f"step {step}"
        looked += is_part
        settings = {BLOCKS_MIN.key.replace(".", "__"): blocks}
        schedule(world.context(**settings), LOG_COMPACTION, plan_request)
        for instant in pending_plans(world.context(), LOG_COMPACTION):
            match random.choice(("execute", "execute", "cancel", "leave")):
                case "execute":
                    execute(world.context(), LOG_COMPACTION, instant)
                case "cancel":
                    cancel(world.context(), instant, "not wanted", force=True)
    return looked


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_look_at_what_has_changed_finds_all_there_is(chunk: int) -> None:
    run_histories(CASE, chunk, count=50)


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_all_there_is_in_real_logs(seed: int) -> None:
    for turn in range(TIMES):
        try:
            assert run_history(seed + 3 * turn) > 0
        except BaseException as error:
            error.add_note(f"replay: run_history({seed + 3 * turn})")
            raise
