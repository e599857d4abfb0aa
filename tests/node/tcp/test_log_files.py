"""Logs in real files: what was synced is back after a crash at any operation; damage is named, not served."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from node.core import machine as m
from node.core.errors import StorageError
from node.protocols.sprinkler.messages import CODEC, Token
from node.tcp.log_files import LogFiles
from tests.node.tcp.crashing_files import ENOSPC, Crash, CrashingFiles, FailingFiles


def tokens(*numbers):
    return tuple(Token(number) for number in numbers)


PLAN = (  # of every kind: several segments, a rewrite of one, of two, and one that leaves nothing
    m.Append(1, tokens(1, 2, 3)),
    m.Append(1, tokens(4)),
    m.Append(2, tokens(5, 6)),
    m.Append(3, tokens(7)),
    m.Rewrite((1,), tokens(3)),
    m.Append(4, tokens(8, 9)),
    m.Rewrite((2, 3), tokens(6)),
    m.Append(5, tokens(10)),
    m.Rewrite((4,), ()),
    m.Append(5, tokens(11)),
)


def stored(folder):
    """Open the log files and return what they hold and the report."""
    files = LogFiles(folder, CODEC)
    said = files.open()
    found = {
        segment.number: [message.configuration for message in segment.messages] for segment in files.read()
    }
    files.close()
    return found, said


def expected(operations):
    """By definition: what the operations leave."""
    segments: dict[int, list[int]] = {}
    for operation in operations:
        numbers = [message.configuration for message in operation.messages]
        if isinstance(operation, m.Append):
            segments.setdefault(operation.segment, []).extend(numbers)
        else:
            for number in operation.segments[1:]:
                del segments[number]
            segments[operation.segments[0]] = numbers
            if not numbers:
                del segments[operation.segments[0]]
    return segments


def perform(files, operations, one_by_one=True):
    """How many were durable; `one_by_one` in groups of one, else in one group."""
    groups = [[operation] for operation in operations] if one_by_one else [list(operations)]
    done = 0
    try:
        for group in groups:
            before = done
            for count in files.perform(group):
                done = before + count
    except Crash:
        return done, True
    return done, False


@pytest.mark.parametrize(("part", "one_by_one"), [(0.0, False), (0.5, True), (1.0, False)])
def test_after_a_crash_at_any_operation_all_that_was_durable_is_there_and_a_prefix_of_the_rest(
    tmp_path, part, one_by_one
):
    for last in range(1000):
        folder = tmp_path / str(last)
        files = LogFiles(folder, CODEC, files=CrashingFiles(last, part))
        try:
            files.open()
            done, crashed = perform(files, PLAN, one_by_one)
        except Crash:
            done, crashed = 0, True
        files.close()
        found, _ = stored(folder)
        assert found in [state for n in range(done, len(PLAN) + 1) for state in states_within(n)], (
            last,
            done,
        )
        again = LogFiles(folder, CODEC)
        again.open()
        following = max([segment.number for segment in again.read()], default=0) + 10
        list(again.perform([m.Append(following, tokens(99))]))
        again.close()
        assert stored(folder)[0] == {**found, following: [99]}
        if not crashed:
            break
    assert last > 30
    assert found == expected(PLAN)


def states_within(done):
    """Yield the possible states after `done` operations and a part of the next."""
    yield expected(PLAN[:done])
    if done < len(PLAN) and isinstance(PLAN[done], m.Append):
        for count in range(len(PLAN[done].messages) + 1):
            state = expected([*PLAN[:done], m.Append(PLAN[done].segment, PLAN[done].messages[:count])])
            yield state
            yield {number: kept for number, kept in state.items() if kept}
            yield {PLAN[done].segment: [], **state}


def whole_log(folder):
    files = LogFiles(folder, CODEC)
    files.open()
    perform(files, PLAN[:4])
    files.close()
    return sorted(folder.glob("*.log"))


def damaged(path, data):
    """Flip a bit of a file, or cut it off, somewhere; return where."""
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[at:]
    path.write_bytes(content)
    return at


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_last_segment_is_cut_with_a_warning_and_only_true_events_are_served(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    at = damaged(whole_log(folder)[-1], data)
    found, said = stored(folder)
    whole = {1: [1, 2, 3, 4], 2: [5, 6]}
    assert found in ({**whole, 3: [7]}, {**whole, 3: []}, whole)
    assert bool(said) or found.get(3) == [7] or at in (0, 32)
    assert stored(folder) == (found, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1), st.data())
def test_damage_in_an_older_segment_is_an_error_that_names_the_file_and_the_remedy(
    tmp_path_factory, which, data
):
    folder = tmp_path_factory.mktemp("log")
    path = whole_log(folder)[which]
    damaged(path, data)
    with pytest.raises(StorageError, match="Restore it from a copy") as raised:
        stored(folder)
    assert str(path) in str(raised.value)


def test_two_processes_cannot_have_the_same_log(tmp_path):
    first, second = LogFiles(tmp_path / "log", CODEC), LogFiles(tmp_path / "log", CODEC)
    list(first.perform([m.Append(1, tokens(1))]))
    with pytest.raises(StorageError, match="another process"):
        second.open()
    first.close()
    second.open()
    second.close()


@pytest.mark.parametrize("at_sync", [False, True])
def test_a_failed_operation_can_be_retried_and_applies_once(tmp_path, at_sync):
    disk = FailingFiles(at_sync=at_sync)
    files = LogFiles(tmp_path / "log", CODEC, files=disk)
    files.open()
    for at, operation in enumerate(PLAN):
        disk.error = ENOSPC
        for _ in range(2):
            if operation.messages:  # what only removes files needs no room
                with pytest.raises(OSError, match="No space"):
                    list(files.perform([operation]))
        disk.error = None
        assert list(files.perform([operation])) == [1], at
    files.close()
    assert stored(tmp_path / "log") == (expected(PLAN), [])
