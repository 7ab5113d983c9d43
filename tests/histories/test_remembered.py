"""What is remembered while tables are played changes no answer, and is put back."""

from lakewarden.engine.formats.payloads.codec import Codec
from tests.histories.history import History, play
from tests.histories.remembered import remembering


def test_a_history_goes_the_same_way_whether_bytes_are_remembered_or_not() -> None:
    decode, history = Codec.decode, History.drawn(11)
    plain = play(history)
    with remembering():
        assert Codec.decode is not decode
        assert play(history).told == plain.told
    assert Codec.decode is decode
