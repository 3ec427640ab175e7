"""The file of machines: each has its numbers and a source, in units that can be true."""

import pytest

from manyhands.simulate import machines


@pytest.mark.parametrize("name", machines.names())
def test_each_machine_is_whole(name):
    one = machines.named(name)
    for latency_s, bytes_per_s in (one.machine.inside, one.machine.between):
        assert 1e-6 <= latency_s <= 1e-4 and 1e9 <= bytes_per_s <= 1e12
    assert one.machine.between[1] < one.machine.inside[1]
    assert 1e12 < one.flops_per_s < 1e16 and 1e9 < one.memory_bytes < 1e12
    assert one.source and one.arithmetic in ("float32", "bfloat16")


def test_a_part_of_the_links_rate():
    whole, half = machines.named("dgx-h100"), machines.named("dgx-h100", reached=0.5)
    assert whole.machine.between == (1e-5, 50e9) and half.machine.between == (1e-5, 25e9)
    assert half.machine.inside[0] == whole.machine.inside[0] and half.flops_per_s == whole.flops_per_s


def test_what_is_not_there_is_told():
    with pytest.raises(ValueError, match="no machine 'cray'; there are p2-8xlarge"):
        machines.named("cray")
    with pytest.raises(ValueError, match="reached is 0"):
        machines.named("dgx-h100", reached=0)
