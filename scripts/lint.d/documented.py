"""Which declarations of the programs' interface have no comment (style rule 30).

A paragraph is what stands between two blank lines; a class begins a new one. A declaration is
documented when its paragraph has a comment before it, or its own line one, so that one comment can
introduce several declarations that belong together. Private members and the values of an
enumeration need none.
"""

import re

import sources

PUBLIC = re.compile(r"^worker_runtime/elastic\w*\.h$")
# What says nothing, or what the language gives a meaning.
SELF_EVIDENT = re.compile(
    r"^(#|\}|\{|(inline )?namespace\b|extern\b|using namespace\b|(public|private|protected):"
    r"|(class|struct|union|enum class) [\w:]+( : \w+)?;|friend\b|static_assert\b"
    r"|size_t struct_size;|(virtual )?~\w+\(|.*= (default|delete);|(explicit )?[A-Z]\w*\(.*"
    r"|.*\boperator\W+\()")
OPEN_CLASS = re.compile(r"\b(class|struct|union)\s+[\w:]+[^();=]*$")


def visible(code):
    """The code with the insides of functions, enumerations, `namespace detail` and private parts
    blanked; every line keeps its number."""
    out, levels, statement = [], [True], ""
    for char in code:
        if char == "}" and len(levels) > 1:
            levels.pop()
        out.append(char if all(levels) or char == "\n" else " ")
        if char == "{":
            head = " ".join(statement.split())
            levels.append(bool(
                re.search(r"\bnamespace\b(?! detail)|\bextern\b", head)
                or (OPEN_CLASS.search(head) and "enum" not in head)))
            statement = ""
        elif char in "};":
            statement = ""
        elif char == "\n" and statement.strip().startswith("#"):
            statement = ""
        else:
            statement += char
            access = re.search(r"\b(public|private|protected):$", statement)
            if access:
                levels[-1] = access.group(1) == "public"
                statement = ""
    return "".join(out)


def undocumented(path, text):
    """(line number, declaration) of each one without a comment."""
    if not PUBLIC.match(str(path)):
        return
    documented, going_on, macro = False, False, False
    shown = visible(sources.strip(text)).split("\n")
    for number, (code, line) in enumerate(zip(shown, text.split("\n")), 1):
        code = code.strip()
        if not line.strip():
            documented = going_on = False
            continue
        documented = documented or bool(re.search(r"//|/\*|^ \*", line))
        if not code:
            continue
        if not going_on and not documented and not SELF_EVIDENT.match(code):
            yield number, code
        macro = code.startswith("#") or (macro and going_on)
        going_on = code.endswith("\\") if macro else not re.search(r"[;{}:]$", code)
        if OPEN_CLASS.search(code.rstrip("{ ")) and code.endswith("{"):
            documented = False
