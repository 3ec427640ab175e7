"""The configuration: a file, and words `section.name=value` of the command line that replace what is in it."""

import ast
import tomllib


def read_config(path, words):
    with open(path, "rb") as file:
        cfg = tomllib.load(file)
    for word in words:
        name, value = word.split("=", 1)
        section, key = name.split(".")
        assert key in cfg[section], f"{name} is not an option"
        cfg[section][key] = ast.literal_eval(value)
    return cfg
