"""The file of machines: each has its numbers and a source, in units that can be true."""

import pytest

from manyhands.simulate import machines


@pytest.mark.parametrize("name", machines.names())
def test_each_machine_is_whole(name):
    kind = machines.named(name)
    for latency_s, bytes_per_s in (kind.machine.inside, kind.machine.between):
        assert 1e-6 <= latency_s <= 1e-4 and 1e9 <= bytes_per_s <= 1e12
    assert kind.machine.between[1] < kind.machine.inside[1]
    assert 1e12 < kind.flops_per_s < 1e16 and 1e9 < kind.memory_bytes < 1e12
    assert kind.source and kind.arithmetic in ("float32", "bfloat16")


def test_a_part_of_the_links_rate():
    whole, half = machines.named("dgx-h100"), machines.named("dgx-h100", reached=0.5)
    assert whole.machine.between == (1e-5, 50e9) and half.machine.between == (1e-5, 25e9)
    assert (
        half.machine.inside[0] == whole.machine.inside[0] and half.flops_per_s == whole.flops_per_s
    )


def test_what_is_not_there_is_told():
    with pytest.raises(ValueError, match="no machine 'cray'; there are p2-8xlarge"):
        machines.named("cray")
    with pytest.raises(ValueError, match="reached is 0"):
        machines.named("dgx-h100", reached=0)


@pytest.mark.parametrize(
    "text, message",
    [
        (
            "gpus = 8\nlinks = 1\ninside = { latency_s = 5, bytes_per_s = 20e9 }",
            "`inside.latency_s` is 5; it must be seconds, up to 0.1",
        ),
        (
            "gpus = 8\ninside = { latency_s = 5e-6, bytes_per_s = 400 }",
            "`inside.bytes_per_s` is 400; it must be bytes per second, from 1e6",
        ),
        (
            "gpus = 8\ninside = { latency_us = 5, bytes_per_s = 20e9 }",
            "`inside` must be a link with seconds and bytes per second",
        ),
        ("gpus = 0", "`gpus` must be a whole number from 1 up"),
        ("gpus = 8", "`inside` must be a link"),
        ("gpus = 1\nmemory_bytes = 80", "`memory_bytes` is 80; it must be bytes"),
        ("gpus = 1\nflops_per_s = 312", "`flops_per_s` is 312"),
        ("gpus = 1\nadds = 'here'", "`adds` must be one of '', 'inside', 'everywhere'"),
        ("gpus = 1\nnics = 8", "no key `nics`"),
        ("gpus = 1\ntorus = 2.5", "`torus` must be a whole number"),
    ],
)
def test_a_file_with_a_wrong_unit_or_field_is_refused_with_its_name(tmp_path, text, message):
    path = tmp_path / "my.toml"
    path.write_text(text + "\nbetween = { latency_s = 1e-5, bytes_per_s = 3e9 }\n")
    with pytest.raises(ValueError, match=message):
        machines.from_file(path)


def test_a_torus_and_a_bus_of_a_file_are_simulated(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(
        "gpus = 64\ntorus = 3\ninside_shared_by = 4\nadds = 'everywhere'\ninside = { latency_s = "
        "1e-6, bytes_per_s = 1e9 }\nbetween = { latency_s = 1e-5, bytes_per_s = 3e9 }\n"
    )
    machine = machines.from_file(path).machine
    assert (machine.torus, machine.inside_shared_by, machine.adds) == (3, 4, "everywhere")
