"""TOML files: the standard library reads them from Python 3.11 on; tomli, the same code, before."""

try:
    from tomllib import TOMLDecodeError, loads
except ModuleNotFoundError:
    # the same code, for Python 3.10
    from tomli import TOMLDecodeError, loads  # type: ignore[no-redef]

__all__ = ["TOMLDecodeError", "loads"]
