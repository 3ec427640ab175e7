"""Cut layers and named tensors on four ranks.

Values, gradients and all-reduces are compared with one process, and a bad layout gets its message.
"""

from pathlib import Path

import pytest

pytest.importorskip("torch")

ROUNDING = 1e-11  # gradients here are of the order of 1e3


@pytest.fixture(scope="module")
def ranks(cluster):
    """call(expression): its value on each rank."""
    cluster.px(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nimport mesh_programs",
        setup=True,
    )

    def call(expression):
        cluster.px(f"value = mesh_programs.{expression}")
        return cluster.pull("value")

    return call


# layout -> all-reduces forward and backward on the 2 x 2 mesh, as (axis, numbers)
BILLS = [
    ({}, [], []),
    # the gradients of the bias and both weights
    ({"batch": "x"}, [("x", 1)], [("x", 12), ("x", 72), ("x", 72)]),
    ({"hidden": "y"}, [("y", 72)], [("y", 72)]),  # the product of 12 x 6, the gradient of x
    (
        {"batch": "x", "hidden": "y"},
        [("x", 1), ("y", 36)],
        [("x", 6), ("x", 36), ("x", 36), ("y", 36)],
    ),
    ({"in": "x"}, [("x", 144)], []),
    ({"out": "y"}, [("y", 1)], [("y", 144)]),
]


@pytest.mark.parametrize(
    ("layout", "forward", "backward"),
    BILLS,
    ids=[", ".join(layout) or "nothing" for layout, *_ in BILLS],
)
def test_one_program_any_layout_same_numbers_another_bill(ranks, layout, forward, backward):
    for error, *calls, _ in ranks(f"program((2, 2), {layout})"):
        assert error < ROUNDING
        assert calls == [forward, backward]


def test_no_rank_holds_the_whole_of_what_is_cut(ranks):
    for *_, shapes in ranks("program((2, 2), {'batch': 'x', 'hidden': 'y'})"):
        assert shapes == {"x": (6, 6), "w1": (6, 6), "b1": (6,), "w2": (6, 6)}


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (3, 1), (4, 1), (1, 4)], ids=lambda shape: f"{shape[0]}x{shape[1]}"
)
def test_other_meshes(ranks, shape):
    """Meshes of one rank, two, three and four.

    Where an axis has one rank only, nothing is sent along it.
    """
    layout = {"batch": "x", "hidden": "y"} if shape != (1, 4) else {"hidden": "y"}
    inside = [result for result in ranks(f"program({shape}, {layout})") if result]
    assert len(inside) == shape[0] * shape[1]
    for error, forward, backward, _ in inside:
        assert error < ROUNDING
        assert {axis for axis, _ in forward + backward} == {
            axis for axis, n in zip("xy", shape, strict=True) if n > 1
        }


@pytest.mark.parametrize(
    "layout",
    [{}, {"b": "x"}, {"b": "x", "k": "y"}, {"i": "x", "j": "y"}, {"i": "y", "k": "x"}],
    ids=str,
)
def test_what_is_shared_kept_and_summed(ranks, layout):
    assert max(ranks(f"weights_once((2, 2), {layout})")) < 1e-10


def test_a_block_by_f_and_g(ranks):
    """Two all-reduces forward and two backward, each of the whole activation."""
    for error, forward, backward in ranks("megatron()"):
        assert error < ROUNDING
        assert forward == backward == 2 * [("allreduce", 2 * 8 * 16)]


def test_f_and_g_can_be_differentiated_again(ranks):
    for error, unchanged in ranks("second_derivative()"):
        assert error < ROUNDING
        assert unchanged


def test_g_of_a_tensor_that_is_not_contiguous(ranks):
    assert max(ranks("turned()")) < ROUNDING


def test_what_cannot_be_gets_a_message(ranks):
    by_rank = ranks("refusals()")
    expected = {
        "axis": "'batch' is laid on axis 'z', but the mesh has x, y.",
        "no names": "the axes of the mesh have no names: give init_device_mesh mesh_dim_names=.",
        "one axis": "cut ('i', 'j'): 'i' and 'j' both lie on axis 'x', ",
        "one axis, no tensor has both": (
            "einsum ('i',), ('j',) -> (): 'i' and 'j' both lie on axis 'x', "
        ),
        "divides": "cut: 'batch' has size 5, which does not divide by the 2 ranks of axis 'x'.",
        "names": "cut: 1 names ('batch',) for a tensor of shape (4, 6).",
        "twice": "cut ('in', 'in'): dimension 'in' appears twice in ('in', 'in').",
        "out": "einsum: out has 'time', which neither ('batch', 'in') nor ('in', 'hidden') has.",
        "two meshes": (
            "einsum: the two tensors are on different Mesh objects. Cut both with the same Mesh."
        ),
        "plus": "+: ('in', 'hidden') has 'hidden', which ('batch', 'in') has not.",
        "map": "map: the shape (2, 6) became ().",
        "no tensor": "copy_to: a tensor is needed, not list.",
    }
    for rank, (messages, no_gradient, named) in enumerate(by_rank):
        outside = (
            {
                "copy_to": f"copy_to: rank {rank} is not in this group.",
                "reduce_from": f"reduce_from: rank {rank} is not in this group.",
                "outside": f"rank {rank} is not in this mesh",
            }
            if rank > 1
            else {}
        )
        assert messages.keys() == expected.keys() | outside.keys()
        for what, start in (expected | outside).items():
            assert messages[what] and messages[what].startswith(start), (rank, what, messages[what])
        assert no_gradient
        assert named
