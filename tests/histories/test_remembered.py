"""What is remembered while tables are played changes no answer, and is put back."""

from lakewarden.engine.formats.instant_metadata.binding import InstantCodec
from tests.histories.history import History, play
from tests.histories.remembered import remembering


def test_a_history_goes_the_same_way_whether_bytes_are_remembered_or_not() -> None:
    decode, history = InstantCodec.decode, History.drawn(11)
    plain = play(history)
    with remembering():
        assert InstantCodec.decode is not decode
        assert play(history).reported == plain.reported
    assert InstantCodec.decode is decode
