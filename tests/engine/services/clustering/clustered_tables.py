"""Tables that a test has clustered."""

from lakewarden.engine.services.clustering.service import CLUSTERING
from lakewarden.engine.services.execution.execute import Execution, execute
from lakewarden.engine.services.planning.plan_request import PlanRequest
from lakewarden.engine.services.planning.schedule import Scheduled, schedule
from tests.engine.services.service_table import (
    ServiceWorld,
)

PLAIN = PlanRequest()


def scheduled(
    world: ServiceWorld, plan_request: PlanRequest = PLAIN, **arguments: object
) -> Scheduled:
    found = schedule(world.context(50, **arguments), CLUSTERING, plan_request)
    assert isinstance(found, Scheduled), found
    world.clock.advance(1000)
    return found


def clustered(
    world: ServiceWorld, plan_request: PlanRequest = PLAIN, **arguments: object
) -> Execution:
    plan = scheduled(world, plan_request, **arguments)
    done = execute(world.context(51, **arguments), CLUSTERING, plan.instant)
    world.clock.advance(1000)
    return done
