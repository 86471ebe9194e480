"""Share sessions: their epochs, their limit, and the end of their connection."""

from tidelog.api.records.share_sessions import ShareMemberKey, ShareSession, ShareSessions
from tidelog.model.errors import ErrorCode

KEY = ShareMemberKey("g", "m")
OTHER = ShareMemberKey("g", "n")


def test_epochs_increase_by_one() -> None:
    sessions = ShareSessions(2)
    assert sessions.use(KEY, 1) is ErrorCode.share_session_not_found
    session = sessions.open(KEY, 7)
    assert isinstance(session, ShareSession)

    assert sessions.use(KEY, 1) is session
    assert sessions.use(KEY, 1) is ErrorCode.invalid_share_session_epoch
    assert sessions.use(KEY, 2) is session
    assert sessions.use(KEY, -1) is session


def test_epochs_begin_again_after_the_largest() -> None:
    sessions = ShareSessions(1)
    session = sessions.open(KEY, 7)
    assert isinstance(session, ShareSession)
    session.epoch = 2**31 - 1

    assert sessions.use(KEY, 2**31 - 1) is session

    assert session.epoch == 1


def test_the_number_of_sessions_is_limited_but_a_member_may_begin_again() -> None:
    sessions = ShareSessions(1)
    sessions.open(KEY, 7)

    assert sessions.open(OTHER, 8) is ErrorCode.share_session_limit_reached
    assert isinstance(sessions.open(KEY, 8), ShareSession)


def test_sessions_end_with_their_connection() -> None:
    sessions = ShareSessions(3)
    first = sessions.open(KEY, 7)
    sessions.open(OTHER, 8)

    assert sessions.connection_lost(7) == [first]

    assert len(sessions) == 1
    assert sessions.connection_lost(7) == []
