"""Writing on an object store: a pipeline against a real S3 server process."""

from lakewarden import Table
from lakewarden.engine.storage.port import Location
from tests.engine.storage.conftest import s3_location, s3_server
from tests.writing.model import Model, Story, contents_of
from tests.writing.shapes import Shape, carry_out

__all__ = ["s3_location", "s3_server"]


def test_a_pipeline_on_s3(s3_location: Location) -> None:
    shape = Shape("mor", index="RECORD_INDEX")
    shape.create(s3_location.uri, storage_options=s3_location.options)
    table = Table(s3_location.uri, s3_location.options)
    model: Model = shape.model()
    story = Story(6, model, kinds=("upsert", "insert", "delete"))
    for write in story.writes(5):
        carry_out(table, write)
        assert contents_of(table.read_arrow()) == model.contents()
    assert contents_of(table.read_arrow(use_metadata=False)) == model.contents()
    assert table.timeline().completed()
