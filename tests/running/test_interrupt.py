from __future__ import annotations

import os
import signal

import pytest

from msda_bench.running.execute import Interrupt, terminable


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_requests_a_stop_and_raises_only_where_asked(number: int) -> None:
    former = signal.getsignal(number)
    with Interrupt() as interrupt:
        assert not interrupt.requested
        with pytest.raises(KeyboardInterrupt), interrupt.raising():
            os.kill(os.getpid(), number)
        assert interrupt.requested
        os.kill(os.getpid(), number)  # a second one disturbs nothing
        with pytest.raises(KeyboardInterrupt), interrupt.raising():
            pytest.fail("work began although a stop was requested")
    assert signal.getsignal(number) == former


def test_sigterm_acts_like_ctrl_c() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminable():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == former
