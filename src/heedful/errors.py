"""What goes wrong because of what was asked, said in one sentence.

A `Mistake` is the user's to mend: its message names the file, line, column or option and says what
would be right. The command line prints it without a traceback and exits with 2; from Python it is an
ordinary exception. Anything else that is raised is ours to mend.
"""

import re

LONGEST = 80  # characters of a value in a sentence


# What a terminal obeys, and what turns the direction of a line around; new lines and tabs stay.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape(text: str) -> str:
    """`text` with every character that is obeyed instead of shown as an escape."""
    if text.isprintable():
        return text
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Mistake(Exception):
    """One clear sentence about what was asked and what would be right; it can be printed whatever was given."""

    def __init__(self, sentence: str) -> None:
        super().__init__(escape(sentence))


def one_of(what: str, given: object, known: list[str]) -> Mistake:
    """The sentence for a name that does not exist, with the nearest that does, and all of them."""
    from difflib import get_close_matches

    near = []
    if isinstance(given, str) and len(given) <= LONGEST:
        near = [name for name in known if name.lower() == given.lower()] or get_close_matches(given, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return Mistake(f"there is no {what} {short(given)}.{hint} Known: {', '.join(known)}.")


def short(value: object) -> str:
    """A value as it can stand in a sentence: cut, and whatever its own `repr` does."""
    try:
        text = repr(value)
    except Exception:  # an integer of thousands of digits, an object of somebody else's
        return f"a {type(value).__name__} that cannot be shown"
    text = escape(" ".join(text.split()))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
