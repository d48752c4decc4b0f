"""Makes the extension's C source and its type stub from the public headers, so that Python's view of the library cannot
drift from C's.

The headers are plain enough to be read without a preprocessor: comments, includes, guards and inline function bodies are
taken out, integer macros become constants, and what is left are the declarations that cffi parses.
"""
from __future__ import annotations

import argparse
import pathlib
import re

# Order of dependence; a header not listed here is read after these, by name.
FIRST = ["status.h", "topology.h", "load.h", "placement.h", "metrics.h", "plan.h"]
SKIPPED = {"eplb.h", "export.h", "route_select.h"}

# Functions that C calls and Python implements.
CALLBACKS = """
extern "Python" bool eplb_python_progress(void *context, int64_t done, int64_t total);
extern "Python" bool eplb_python_problem(void *context, const eplb_problem *problem);
"""


def header_paths(include: pathlib.Path) -> list[pathlib.Path]:
    """Public headers in an order in which each follows those it needs."""
    folder = include / "eplb"
    names = sorted(path.name for path in folder.glob("*.h"))
    order = FIRST + [name for name in names if name not in FIRST]
    return [folder / name for name in order if name not in SKIPPED]


def strip_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def constants(text: str) -> list[str]:
    """Integer macros as cffi constants; include guards and function-like macros have no value and fall out."""
    found = re.findall(r"^#define\s+(EPLB_[A-Z0-9_]+)\s+(\(?-?\d+\)?)\s*$", text, flags=re.MULTILINE)
    return [f"#define {name} ..." for name, _ in found]


def declarations_of(header: pathlib.Path) -> str:
    """What cffi is to parse of one header."""
    text = strip_comments(header.read_text())
    defines = constants(text)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\bEPLB_(API|BEGIN_DECLS|END_DECLS)\b", "", text)
    text = re.sub(r"\n\s*\n+", "\n", text)
    return "\n".join(defines) + "\n" + text


def declarations(include: pathlib.Path) -> str:
    """Everything cffi is to parse, callbacks included."""
    return "\n".join(declarations_of(path) for path in header_paths(include)) + CALLBACKS


def write_source(include: pathlib.Path, output: pathlib.Path) -> None:
    import cffi

    builder = cffi.FFI()
    builder.cdef(declarations(include))
    includes = "\n".join(f"#include <eplb/{path.name}>" for path in header_paths(include))
    builder.set_source("eplb._eplb", includes)
    builder.emit_c_code(str(output))


_STUB_HEAD = """# Written by python/build_ffi.py --stub; the tests hold it current.
from typing import Any, Callable, TypeVar

_Function = TypeVar("_Function")

class _Interface:
    NULL: Any
    def def_extern(self, name: str, error: Any = ..., onerror: Any = ...) -> Callable[[_Function], _Function]: ...
    def __getattr__(self, name: str) -> Any: ...

class _Library:
"""
_FUNCTION = re.compile(r"^\s*([a-z]\w*(?:\s+\w+)*?[\s*]+)(eplb_\w+)\(([^()]*)\);", flags=re.MULTILINE)
_ENUM = re.compile(r"typedef enum (\w+) \{([^}]*)\}")
_NUMBER_TYPES = {"int32_t": "int", "int64_t": "int", "uint64_t": "int", "size_t": "int", "bool": "bool", "double": "float"}


def python_type(c_type: str, enums: set[str]) -> str:
    """The Python type of a value of that C type."""
    plain = c_type.replace("const", "").strip()
    if plain in enums:
        return "int"
    return {"void": "None", **_NUMBER_TYPES}.get(plain, "Any")


def stub_function(result: str, name: str, parameters: str, enums: set[str]) -> str:
    """One C function as a method of the stub's library."""
    arguments = ["self"]
    for parameter in ("" if parameters.strip() == "void" else parameters).split(","):
        if parameter.strip():
            argument = re.findall(r"\w+", parameter)[-1]
            arguments.append(f"{argument}: {python_type(parameter.strip()[: -len(argument)], enums)}")
    line = f"    def {name}({', '.join(arguments)}) -> {python_type(result, enums)}: ..."
    if len(line) <= 120:
        return line
    return f"    def {name}(\n        " + ",\n        ".join(arguments) + f",\n    ) -> {python_type(result, enums)}: ..."


def stub(include: pathlib.Path) -> str:
    """The type stub of the extension."""
    text = declarations(include)
    enums = {name for name, _ in _ENUM.findall(text)}
    values = [value for _, body in _ENUM.findall(text) for value in re.findall(r"\bEPLB_\w+", body)]
    macros = re.findall(r"^#define (\w+) \.\.\.", text, flags=re.MULTILINE)
    lines = [f"    {name}: int" for name in [*macros, *values]]
    callbacks = re.findall(r"extern \"Python\" \w+ (\w+)", text)
    lines += [f"    {name}: Any" for name in callbacks]
    functions = _FUNCTION.findall(text)
    lines += [stub_function(result, name, parameters, enums) for result, name, parameters in functions]
    return _STUB_HEAD + "\n".join(lines) + "\n\nlib: _Library\nffi: _Interface\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--include", type=pathlib.Path, required=True, help="the folder that holds eplb/*.h")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the file to write")
    parser.add_argument("--stub", action="store_true", help="write the type stub instead of the C source")
    arguments = parser.parse_args()
    if arguments.stub:
        arguments.output.write_text(stub(arguments.include))
    else:
        write_source(arguments.include, arguments.output)


if __name__ == "__main__":
    main()
