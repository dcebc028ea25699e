import socket

import pytest

from fasterce.serve.messages import StartError
from fasterce.serve.run import listening, url_of


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged():
    with listening("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_told_at_once():
    with listening("127.0.0.1", 0) as listener:
        listener.listen()
        with pytest.raises(StartError, match="Address already in use"), listening(*listener.getsockname()):
            pass


def test_the_address_as_a_browser_takes_it():
    with listening("::1", 0) as listener:
        assert url_of(listener).startswith("http://[::1]:")
