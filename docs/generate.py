"""Generate docs/reference from the code, or check that it is up to date.

    python docs/generate.py            write the reference
    python docs/generate.py --check    exit 1 if what is committed is not what would be generated

The command line describes itself (`--help`), settings are described by the docstrings of their
dataclasses, the policy by its sample, and refusals and metrics by their own tables. A new command
or key is in the reference after `make docs`. Names of the Python page are listed here.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator, Set
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file's own folder would be there alone

import parley  # noqa: E402
from common.methods.registry import methods  # noqa: E402
from common.schema import declaration  # noqa: E402
from common.study.document import Study  # noqa: E402
from common.study.terms import DOCUMENT_TERMS, TERMS  # noqa: E402
from common.wire.catalogue import ErrorCode  # noqa: E402
from curator import settings as curator_settings  # noqa: E402
from parley.cli import main as cli  # noqa: E402
from parley.cli.exit_codes import MEANINGS  # noqa: E402
from party import settings as party_settings  # noqa: E402
from party.owner import policy  # noqa: E402
from party.sources import settings as source_settings  # noqa: E402

REFERENCE = ROOT / "docs" / "reference"
NOTICE = "<!-- Made by `make docs` from the code. Do not edit: the next run replaces it. -->\n"

_COMMANDS = """\
`parley --help` lists the commands and examples, `parley COMMAND --help` explains one. Results go to
standard output, everything else to standard error.
"""
_SHARED = """\
They mean the same wherever a command names them in its heading or under "Shared", unless it says
otherwise. Every command that ends by itself has `--json`, and every command of a service
(`curator`, `party`, `doctor`, `config`, `backup`, `restore`) has `--config`. An argument in
brackets may be left out.
"""
_OF_SERVICES = ("curator", "party", "doctor", "config", "backup", "restore")
_COMPLETION = """\
`parley --install-completion` teaches your shell (bash, zsh, fish, PowerShell) to complete commands,
options and values; `parley --show-completion` only prints what it would install.
"""
_CONFIGURATION = """\
Defaults, then the settings file (TOML), then the environment, then flags: the later one wins, and
`parley config show curator` (or `party`) says where each value came from. A key that is not known
is an error. Paths in a file are relative to it. Complete samples:
[deploy/samples](../../deploy/samples).
"""
_STUDY = """\
Then a `[[party]]` for every owner (`name`, `rows`, `identity`), in the order of the ring, and the
schema's `[[attribute]]`s.
"""
_METHODS = """\
Keys of the table of study.toml that has the method's name, and of `--set`. dp-subn and dp-ccbn
choose `budget`, `consistency` and `reuse` by forecast where a new study in profile sound leaves
them out.
"""
_PYTHON = """\
What `import parley` offers, with an example each. They go on from one to the next, and begin with
tables of simulated people: `parley demo --tables .` writes people.csv, north.csv, east.csv,
south.csv and schema.toml. A table is a pandas, Polars or Arrow table, or the path of a file.

```python
import pandas as pd

import parley

people = pd.read_csv("people.csv")
```
"""
# By heading: a name, and an example of it.
_NAMES = {
    "A schema: what the columns may hold": {
        "Schema": 'schema = parley.Schema.load("schema.toml")\nschema.names',
        "Schema.of": """\
small = parley.Schema.of(
    {
        "age": {"kind": "integer", "min": 0, "max": 99, "bins": 20},
        "sex": ["Female", "Male"],
        "smoker": bool,
        "visits": range(0, 30),
    }
)""",
        "Schema.infer": "draft = parley.Schema.infer(people)\nprint(draft)  # review it",
        "Schema.to_toml": "text = schema.to_toml()",
        "read_table": 'table = parley.read_table("people.csv", schema)',
    },
    "One owner": {
        "Subn": "maker = parley.Subn(epsilon=1)\nmaker.get_params()",
        "Subn.fit": 'fitted = maker.fit(people, schema)  # or .fit("people.csv", "schema.toml")',
        "PrivBayes": 'parley.PrivBayes(epsilon=1, score="R").fit(people, schema)',
        "Privelet": """\
ranges = parley.Privelet(epsilon=1).fit(people, small)
ranges.count("age in 20..39 and sex = Female")""",
    },
    "Several owners": {
        "simulate": """\
fitted = parley.simulate(
    {"north": "north.csv", "east": "east.csv", "south": "south.csv"},
    schema,
    epsilon=0.8,
    aggregation="masked",
)""",
    },
    "What is fitted, simulated or loaded": {
        "FittedStudy.sample": """\
rows = fitted.sample(1000)
older = fitted.sample(100, where="age >= 65 and sex = Female")""",
        "FittedStudy.count": 'fitted.count("age in 20..39 and sex = Female").share',
        "FittedStudy.estimate": """\
(mean,) = fitted.estimate(lambda table: table["age"].mean(), uses=["age"])
mean.low, mean.high, mean.flagged""",
        "Estimate": "mean.estimate, mean.standard_error",
        "FittedStudy.replicates": "tables = fitted.replicates(5)",
        "pool": """\
parley.pool(
    [table["age"].mean() for table in tables],
    [table["age"].var() / len(table) for table in tables],
)""",
        "FittedStudy.diagnostics": "fitted.diagnostics.related",
        "FittedStudy.privacy": 'fitted.privacy["epsilon_delivered"]',
        "FittedStudy.save": 'fitted.save("release")',
        "FittedStudy.report": 'fitted.report("report.html")',
        "load": 'fitted = parley.load("release")  # or release.zip',
        "evaluate": "parley.evaluate(people, fitted.sample(), schema)  # NOT for publication",
    },
    "When something is wrong": {
        "ParleyError": """\
try:
    fitted.sample(where="age > 200")
except parley.ParleyError as error:
    print(error)""",
        "PrivacyWarning": """\
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("error", parley.PrivacyWarning)  # refuse what promises little
    maker.fit(people, schema)""",
    },
}
_AS_ON_THE_COMMAND_LINE = (
    "PrivBayes",
    "Privelet",
    "Schema.infer",
    "Subn",
    "evaluate",
    "read_table",
)
_FITTED = """\
The parameters of `Subn`, `PrivBayes` and `Privelet` are the options of `parley synthesize`, those
of `Schema.infer` and `evaluate` the options of these commands; `help` in Python has all of them.
`network` gives the parents of each attribute by name, so that nothing is learnt.

`Subn.fit` returns a `FittedStudy`, `PrivBayes.fit` a `FittedPrivBayes`, `Privelet.fit` a
`FittedPrivelet`. All of them draw, count, estimate, save and report in the same words.
`parley.simulate` with a schema that has `[events]` returns a `FittedLinkedStudy`, whose `sample`
gives people and their events ([linked tables](../linked-tables.md)).
"""
_TERMS_OF_SIMULATE = """\
Its `**terms` are those of a study: [`epsilon`, `delta`, `method`, `aggregation`, `colluders`,
`may_miss`, `settings`, `criteria` and the others](configuration.md#studytoml), under the names of
this list.
"""
_REFUSALS = """\
A service that refuses a call sends a code and no details; the details are in its own log. The words
come from the receiver's copy of this list: what happened, and *what to do*.
"""


def cli_page() -> str:
    """Every command heading by heading, a line for each option, and the exit codes."""
    listing = {
        heading: [
            entry for name in names for entry in commands_below([name], cli.load_command(name))
        ]
        for heading, names in cli.COMMANDS.items()
    }
    commands = [command for entries in listing.values() for _, command in entries]
    shared = shared_arguments(commands) | shared_options(commands)
    parts = [
        NOTICE,
        "# Commands\n",
        _COMMANDS,
        "## Exit codes\n",
        "".join(f"- {int(code)}: {words}\n" for code, words in MEANINGS.items()),
        "## Completion\n",
        _COMPLETION,
        "## Shared arguments and options\n",
        _SHARED,
        "".join(sorted(shared)),
    ]
    for heading, entries in listing.items():
        parts.append(f"## {heading}\n")
        parts += [command_text(words, command, shared) for words, command in entries]
    return "\n".join(parts)


def shared_options(commands: list[Any]) -> set[str]:
    """The lines of options that most of the commands with this option have; of several only."""
    lines = Counter(line for command in commands for line in parameter_lines(command, "option"))
    flags = Counter(map(_flag, lines.elements()))
    often = [line for line, count in lines.items() if count > 1 and flags[_flag(line)] < 2 * count]
    return {line for line in often if _flag(line) not in _study_flags()}


def shared_arguments(commands: list[Any]) -> set[str]:
    """For each argument that several commands take, the line that saves the most words."""
    lines = Counter(line for command in commands for line in parameter_lines(command, "argument"))
    best: dict[str, str] = {}
    for line, count in lines.items():
        known = best.get(_flag(line), line)
        if count > 1 and count * len(line) >= lines[known] * len(known):
            best[_flag(line)] = line
    return set(best.values())


def _study_flags() -> set[str]:
    return {f"--{term.key.replace('_', '-')}" for term in TERMS.values()}


def _study_lines() -> set[str]:
    """The lines of the terms of a study, as the command that takes all of them has them."""
    lines = parameter_lines(cli.load_command("simulate"), "option")
    return {line for line in lines if _flag(line) in _study_flags()}


def _flag(line: str) -> str:
    return re.split("[ ,=]", line.split("`")[1])[0]


def commands_below(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:  # noqa: ANN401
    """The command, or every command of its group, in the group's order."""
    if not hasattr(command, "commands"):
        yield words, command
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from commands_below([*words, name], below)


def command_text(words: list[str], command: Any, shared: Set[str]) -> str:  # noqa: ANN401
    """What a command says of itself, and of the options that only it has."""
    arguments, options = (parameter_lines(command, kind) for kind in ("argument", "option"))
    implied = ["--json", *(["--config"] if words[0] in _OF_SERVICES else [])]
    flags = [_flag(line) for line in options if line in shared]
    names = [f"`{flag}`" for flag in flags if flag not in implied]
    if _study_flags() <= set(map(_flag, options)):
        names.append("the options of [a study](configuration.md#studytoml)")
        options = [line for line in options if _flag(line) not in _study_flags()]
    elif terms := [f"`{_flag(line)}`" for line in options if line in _study_lines()]:
        names.append(f"{', '.join(terms)} of [a study](configuration.md#studytoml)")
        options = [line for line in options if line not in _study_lines()]
    parts = [
        f"### {' '.join(['parley', *words, *arguments_of(command)])}\n",
        inspect.cleandoc(command.help or "").partition("\n\n")[0] + "\n",
        "".join(line for line in (*arguments, *options) if line not in shared),
        f"Shared: {', '.join(names)}.\n" if names else "",
    ]
    return "\n".join(filter(None, parts))


def arguments_of(command: Any) -> list[str]:  # noqa: ANN401
    """The names of a command's arguments, in brackets if they may be left out."""
    lines = parameter_lines(command, "argument")
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    return [
        _flag(line) if argument.required else f"[{_flag(line)}]"
        for line, argument in zip(lines, arguments, strict=True)
    ]


def parameter_lines(command: Any, kind: str) -> list[str]:  # noqa: ANN401
    """One line for every argument or option: its name, its values, its meaning, its default."""
    with command.make_context(command.name, [], resilient_parsing=True) as context:
        records = [p.get_help_record(context) for p in command.params if p.param_type_name == kind]
    lines = [
        f"- `{names.replace(' range>', '>')}`: {_one_line(words)}\n"
        for names, words in filter(None, records)
    ]
    if kind == "argument":  # what is required shows in the heading
        return [line.replace(" (required)", "").replace("RELEASE", "release") for line in lines]
    return [line.replace(" <", "=<", 1) for line in lines]


def _one_line(words: str) -> str:
    joined = re.sub(r"\n(?=[\w+-]+: )", "; ", words.replace("\b", "").strip())  # of lists
    return " ".join(joined.replace("[required]", "(required)").split())


def configuration_page() -> str:
    """Settings of both services, the owner's source and policy, the schema and the study."""
    services = [
        ("curator", curator_settings.CuratorSettings, curator_settings.PREFIX),
        ("party", party_settings.PartySettings, party_settings.PREFIX),
    ]
    parts = [
        NOTICE,
        "# Configuration\n",
        _CONFIGURATION,
    ]
    for role, kind, prefix in services:
        parts += [
            f"## {role}.toml\n",
            f"In the environment, the key in capitals after `{prefix}`.\n",
            settings_list(kind),
        ]
    parts += [
        "## The [source] of party.toml\n",
        _code(_indented(source_settings)),
        _after_code(source_settings) + "\n",
        "## policy.toml\n",
        "Only `[budget]` is required.\n",
        _code(policy.SAMPLE),
        f"A key that is left out: {_defaults(policy.Policy)}; any other: none.\n",
        "## schema.toml\n",
        _code(_indented(declaration)),
        _after_code(declaration) + "\n",
        "## study.toml\n",
        "Written by `parley curator study new`; its digest is what owners approve.\n",
        "".join(
            f"- `{key}`{option and f', `{option}`'} ({_term_default(name)}): {meaning}\n"
            for name, key, option, meaning in _terms()
        ),
        _STUDY,
        "### Settings of methods\n",
        "; ".join(f"`{each.name}`: {each.summary}" for each in methods().values()) + ".\n",
        _METHODS,
        "".join(
            f"- {method.name} `{key}` ({setting.default}): {setting.meaning}.\n"
            for method in methods().values()
            for key, setting in method.settings.items()
        ),
    ]
    return "\n".join(parts)


def _terms() -> Iterator[tuple[str, str, str, str]]:
    """The terms of a study: name, key of study.toml, option, meaning without its default."""
    keys = {"settings": "[METHOD]", "criteria": "[[criterion]]"}
    for name, term in DOCUMENT_TERMS.items():
        option = f"--{term.key.replace('_', '-')}" if name in TERMS else ""
        yield name, keys.get(name, name), option, term.meaning.partition(" [default:")[0]


def _term_default(name: str) -> str:
    said = DOCUMENT_TERMS[name].meaning.partition("[default: ")[2].rstrip("]")
    return said or _default(next(each for each in dataclasses.fields(Study) if each.name == name))


def errors_page() -> str:
    """Every refusal that one service can send another, with what to do."""
    lines, last = [], {code.remedy: code for code in ErrorCode}  # the last code with a remedy
    for code in ErrorCode:
        told = last[code.remedy]
        remedy = code.remedy if code == told else f"As for {told.name}."
        lines.append(f"- **{code.name}** {code.public} *{remedy}*\n")
    return "\n".join(
        [
            NOTICE,
            "# Refusals between services\n",
            _REFUSALS,
            "".join(lines),
        ]
    )


def python_page() -> str:
    """The names of `import parley` that people use: an example, the signature, the docstring."""
    parts = [NOTICE, "# Python\n", _PYTHON]
    for heading, names in _NAMES.items():
        parts.append(f"## {heading}\n")
        for name, example in names.items():
            parts += [f"### {name}\n", f"```python\n{example}\n```\n", _signed(name)]
            parts += [_TERMS_OF_SIMULATE] if name == "simulate" else []
            parts += [_FITTED] if name == "Privelet" else []
    return "\n".join(parts)


def _signed(dotted: str) -> str:
    """A signature, if there is one, and a docstring."""
    *above, name = dotted.split(".")
    owner = getattr(parley, above[0]) if above else parley
    item = getattr(owner, name, None)
    if item is None:  # a field of a dataclass
        return ""
    text = inspect.cleandoc(item.__doc__ or "").rstrip()
    if not callable(item) or _is_error(item):
        return f"```text\n{text}\n```\n"
    summary, _, rest = text.partition("\n\nRaises:")[0].partition("\n\n")
    if dotted in _AS_ON_THE_COMMAND_LINE:
        rest = ""
    parameters = re.search(r"^(?:Args|Attributes):\n.*", rest, re.MULTILINE | re.DOTALL)
    text = summary if parameters is None else f"{summary}\n\n{parameters[0]}"
    return f"```text\n{_call(name, inspect.signature(item))}\n\n{text}\n```\n"


def _call(name: str, signature: inspect.Signature) -> str:
    """How a function is called: its parameters and their defaults, without types."""
    bare = [value.replace(annotation=value.empty) for value in signature.parameters.values()]
    call = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    text = f"{name}{call} -> {signature.return_annotation}".removesuffix(" -> None")
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)


def _is_error(item: Any) -> bool:  # noqa: ANN401
    """Whether it is a class of errors, whose signature says nothing."""
    return inspect.isclass(item) and issubclass(item, Exception)


def settings_list(kind: Any) -> str:  # noqa: ANN401  (any dataclass)
    """One line for every setting."""
    lines = [(field.name, _default(field), words) for field, words in described(kind)]
    return "".join(f"- `{name}` ({default}): {words}\n" for name, default, words in lines)


def described(kind: Any) -> Iterator[tuple[dataclasses.Field[Any], str]]:  # noqa: ANN401
    """The fields of a dataclass with what its docstring says of them."""
    text = inspect.cleandoc(kind.__doc__).partition("Attributes:\n")[2]
    words = {
        name: " ".join(rest.split())
        for name, rest in re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", text, re.MULTILINE)
    }
    for field in dataclasses.fields(kind):
        if field.name not in words:
            raise SystemExit(f"{kind.__name__}.{field.name} is not described in its docstring")
        yield field, words[field.name]


def _defaults(kind: Any) -> str:  # noqa: ANN401
    fields = [f for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING]
    values = [(field.name, _default(field)) for field in fields]
    return "; ".join(f"`{name}` {value}" for name, value in values if value != "none")


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is dataclasses.MISSING:
        return "required"
    value = field.default
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _indented(module: Any) -> str:  # noqa: ANN401
    """The example in a module's docstring."""
    lines = module.__doc__.splitlines()
    inside = [number for number, line in enumerate(lines) if line.startswith("    ")]
    return dedent("\n".join(lines[inside[0] : inside[-1] + 1]))


def _after_code(module: Any) -> str:  # noqa: ANN401
    """What a module's docstring says below its example."""
    lines = module.__doc__.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("    "))
    return "\n".join(lines[last + 1 :]).strip()


def _code(text: str) -> str:
    return f"```toml\n{text.rstrip()}\n```\n"


PAGES = {
    "cli.md": cli_page,
    "configuration.md": configuration_page,
    "errors.md": errors_page,
    "python.md": python_page,
}


def main(arguments: list[str] | None = None) -> int:
    """Generate or check; return the exit code."""
    parser = argparse.ArgumentParser(description="Generate docs/reference from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on drift")
    check = parser.parse_args(arguments).check
    stale = []
    for name, make in PAGES.items():
        path, text = REFERENCE / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale and check:
        sys.stderr.write(f"docs/reference is stale ({', '.join(stale)}): run `make docs`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
