"""A kernel as JupyterLab starts it, in which no cell above has run: what its cells say."""

import pytest
from jupyter_client.manager import start_new_kernel

from manyhands.learner.jupyter_server import environment, put_settings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """`run(code)` -> (the texts that it shows, its cards as HTML, its error as shown, or "")."""
    root = tmp_path_factory.mktemp("clone")
    put_settings(root)
    manager, client = start_new_kernel(kernel_name="python3", env=environment(root), cwd=str(root))

    def run(code):
        texts, cards, errors = [], [], []

        def hear(message):
            kind, content = message["msg_type"], message["content"]
            if kind in ("display_data", "execute_result"):
                texts.append(content["data"]["text/plain"])
                cards.append(content["data"].get("text/html", ""))
            elif kind in ("error", "stream"):  # a UsageError of IPython is a stream
                errors.append(
                    "\n".join(content["traceback"]) if kind == "error" else content["text"]
                )

        reply = client.execute_interactive(code, output_hook=hear, timeout=60)["content"]
        assert (reply["status"] == "error") == bool(errors)
        return texts, cards, "\n".join(errors)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(
    "code, said",
    [
        ("%%px --setup\nimport torch", "This kernel has no cluster yet"),
        ("%px print(1)", "This kernel has no cluster yet"),
        ("check.broadcast(cluster, 'broadcast_state')", "so check is not defined"),
        ("settle('01-mean', lambda: 3)", "so settle is not defined"),
    ],
)
def test_a_cell_whose_names_are_gone_says_what_to_run(run, code, said):
    [text], [card], error = run(code)
    assert (
        said in text
        and said in card
        and "Run All Above Selected Cell" in text
        and "<button" in card
    )
    assert len(error.splitlines()) == 1, (
        "neither a traceback of IPython's own files nor a second explanation"
    )


def test_an_error_of_the_learners_code_is_shown_as_ever(run):
    texts, _, error = run("1 / 0")
    assert texts == [] and "ZeroDivisionError" in error and "Traceback" in error


def test_a_misspelt_name_is_pythons_own_error_once_a_cell_has_run(run):
    assert run("steps = 3") == ([], [], "")
    texts, _, error = run("stesp + 1")
    assert texts == [] and "NameError" in error and "Traceback" in error


def test_the_magic_of_the_cluster_takes_its_place(run):
    # as its import does
    assert run("from manyhands.cluster import magic; magic.register()") == ([], [], "")
    texts, _, error = run("%%px\nprint(1)")
    assert texts == [] and "Run the cell that starts it" in error
