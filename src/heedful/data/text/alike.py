"""Names that a person takes for one and a program for several: what they look like."""

from __future__ import annotations

import unicodedata

# Letters of other scripts that are drawn like Latin ones (Unicode's confusables, those of Cyrillic and Greek).
DRAWN_LIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u04bb\u0501\u051b\u051d\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408"
    "\u03bf\u03bd\u03b9\u03c1\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "aeopcyxisjhdqwABEKMHOPCTYXISJ" + "ovipABEZHIKMNOPTYX",
)


def looks(name: str) -> str:
    """The same for names that look alike: forms of one character, letters of other scripts, signs that are not seen."""
    if name.isascii():
        return name.strip()
    plain = unicodedata.normalize("NFKC", name)
    seen = "".join(c for c in plain if unicodedata.category(c) != "Cf" and not _chooses_a_form(c))
    return unicodedata.normalize("NFKC", seen.translate(DRAWN_LIKE)).strip()


def _chooses_a_form(character: str) -> bool:
    """A variation selector: a heart in black, a heart in red."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def codes(name: str, beside: str) -> str:
    """Which characters of a name another one does not have: U+043E (CYRILLIC SMALL LETTER O)."""
    odd = [c for c in dict.fromkeys(name) if c not in beside and not c.isascii()]
    return ", ".join(f"U+{ord(c):04X} ({unicodedata.name(c, 'without a name')})" for c in odd[:3])
