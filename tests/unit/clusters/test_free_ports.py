import socket
import threading

import pytest

from tidelog.clusters import free_ports
from tidelog.clusters.free_ports import BLOCK, HOST, PortBlock, becomes_free, is_free


def test_no_two_blocks_have_a_port_in_common() -> None:
    widths = [BLOCK] * 20 + [2 * BLOCK, 3 * BLOCK]
    blocks = [PortBlock(width) for width in widths]
    ports = [
        port
        for block, width in zip(blocks, widths, strict=True)
        for port in range(block.first, block.first + width)
    ]
    assert len(set(ports)) == len(ports)
    for block in blocks:
        block.release()


def test_a_block_can_be_claimed_by_others_once_it_is_released() -> None:
    block = PortBlock()
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        with pytest.raises(OSError, match="in use"):
            other.bind((HOST, block.first))
        block.release()
        other.bind((HOST, block.first))


def test_a_block_of_no_ports_is_refused() -> None:
    with pytest.raises(ValueError, match="a block has at least one port, not 0"):
        PortBlock(0)


def test_a_port_that_is_listened_on_is_not_free() -> None:
    with socket.create_server((HOST, 0)) as taken:
        assert not is_free(taken.getsockname()[1])


def test_a_port_may_be_given_back_a_moment_later() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        before_long = threading.Timer(0.1, taken.close)
        before_long.start()
        assert becomes_free(port)
        before_long.join()


def test_a_port_that_stays_taken_does_not_become_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_ports, "GRACE_SECONDS", 0.05)
    with socket.create_server((HOST, 0)) as taken:
        assert not becomes_free(taken.getsockname()[1])
