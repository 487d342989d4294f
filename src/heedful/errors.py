"""What goes wrong because of what was asked, said in one sentence.

A `Mistake` is the user's to mend: its message names the file, line, column or option and says what
would be right. The command line prints it without a traceback and exits with 2; from Python it is an
ordinary exception. Anything else that is raised is ours to mend.
"""


class Mistake(Exception):
    """One clear sentence about what was asked and what would be right."""


def one_of(what: str, given: str, known: list[str]) -> Mistake:
    """The sentence for a name that does not exist, with the nearest that does, and all of them."""
    from difflib import get_close_matches

    near = get_close_matches(given, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return Mistake(f"there is no {what} {given!r}.{hint} Known: {', '.join(known)}.")
