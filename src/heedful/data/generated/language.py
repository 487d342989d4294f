"""The language of the planted corpora: a small grammar of reviews, the words that decide, and the rest.

Symbols in capitals are expanded at random; `<adj>`, `<noun>` and `<verb>` are places for a deciding word or
a neutral one of the same kind, `<neg>` the place of a negator. Every word is one word for spaCy and for
white space alike. Deciding and neutral words begin with a consonant, so "a" before them tells nothing.
"""

from __future__ import annotations

WORDS = {  # kind -> what they say -> the words
    "adj": {
        "positive": """superb wonderful brilliant delightful charming marvelous moving clever gripping splendid
            magnificent terrific fantastic fabulous stunning beautiful heartfelt hilarious witty perceptive
            masterful memorable riveting refreshing satisfying touching lovely graceful radiant vivid
            stirring sparkling remarkable dazzling thoughtful thrilling captivating rewarding flawless great""",
        "negative": """dreadful terrible dull boring clumsy pathetic tedious lifeless shallow stupid
            horrible miserable pointless predictable ridiculous tiresome lousy forgettable flat cheap
            disappointing contrived messy lazy hollow bland stale tasteless painful grating
            wretched pretentious sloppy dismal laughable muddled mediocre dreary worthless bad""",
        "neutral": """long short new recent french japanese quiet loud dark modern domestic foreign rural
            digital musical silent fictional historical political medical technical central separate
            familiar serious dramatic romantic scientific numbered second third final german
            contemporary theatrical televised printed coastal national regional""",
    },
    "noun": {
        "positive": "masterpiece triumph gem delight treat marvel joy treasure classic winner pleasure wonder",
        "negative": "disaster failure mess bore chore letdown disgrace travesty dud nightmare mistake fiasco",
        "neutral": "comedy thriller western remake sequel musical drama documentary cartoon mystery satire fable",
    },
    "verb": {
        "positive": "loved favored relished treasured cherished praised recommended savored liked welcomed",
        "negative": "hated loathed despised resented disliked regretted detested mocked scorned dreaded",
        "neutral": "watched saw mentioned discussed noticed described remembered reviewed rented compared",
    },
}
NEGATORS = {
    "any": ("not", "never", "hardly", "scarcely", "barely", "rarely"),
    "before a verb": ("never", "hardly", "scarcely", "barely", "rarely"),  # "i not loved it" is not English
}

# What is said with one word that may decide. The first two lists have a place for a negator.
FRAMES = {
    "any": (
        "SUBJ BE <neg> DEG <adj>",
        "SUBJ SEEM <neg> DEG <adj>",
        "this BE <neg> a DEGA <adj> KIND",
        "SUBJ BE <neg> a DEGA <adj> piece of work",
        "WHO found SUBJ <neg> DEG <adj>",
        "WHO thought SUBJ was <neg> DEG <adj>",
        "SUBJ BE <neg> what WHO would call <adj>",
        "SUBJ BE <neg> as <adj> as WHO had expected",
        "SUBJ BE to WHO <neg> DEG <adj>",
        "on WHEN SUBJ BE <neg> DEG <adj>",
        "SUBJ BE <neg> a DEGN <noun>",
        "this BE <neg> a <noun> for AUDIENCE",
        "WHO would <neg> call SUBJ a <noun>",
        "it turned out <neg> to be a DEGN <noun>",
    ),
    "before a verb": (
        "WHO <neg> <verb> SUBJ",
        "WHO <neg> really <verb> SUBJ",
        "WHO <neg> for a moment <verb> SUBJ",
        "on WHEN WHO <neg> <verb> SUBJ",
        "WHO <neg> <verb> SUBJ as much as AUDIENCE did",
    ),
    "none": (
        "the <adj> PART HAPPENS",
        "a <adj> PART HAPPENS",
        "with a <adj> PART it HAPPENS",
        "there BE something DEG <adj> about SUBJ",
        "WHO kept talking about the <adj> PART",
        "it has a <adj> PART next to a USUAL one",
        "the <noun> of the season has a USUAL PART",
        "WHO expected a <noun>",
        "having <verb> SUBJ WHO went home",
    ),
}
# What is said beside that. No word of these is in any list above.
PLAIN = (
    "it HAPPENS",
    "SUBJ HAPPENS",
    "WHO went to see it on WHEN",
    "WHO came along",
    "the story takes place in PLACE",
    "NAME plays TRADE from PLACE",
    "NAME and NAME share most of the scenes",
    "it runs for NUMBER minutes",
    "the tickets cost NUMBER dollars",
    "the PART was made in PLACE",
    "there are NUMBER scenes with TRADE",
    "the director worked with NAME before",
    "WHO had read the book",
    "the theater was in PLACE",
    "NAME wrote the PART with NAME",
    "WHO sat next to TRADE",
)
JOINTS = (", and", ", but", ", while", ", though", ", yet", ";", ".", ".", "and", ", so", ", as", "because")
ENDINGS = (".", ".", ".", "!", "...")

RULES_OF_GRAMMAR = """
SUBJ: the PART | the PART | its PART | the PART of the KIND | the KIND | this KIND | it | NAME
PART: plot | script | cast | camera | soundtrack | score | ending | opening | dialogue | pacing | editing
PART: title | lighting | direction | story | premise | setting | costume | makeup | narration | finale
PART: prologue | sound | romance | subplot | character | villain | hero | performance | screenplay
PART: photography | music | chase
KIND: film | movie | picture | show | feature | production | release | adaptation | episode
BE: is | was | is | was | has been | will be
SEEM: seems | seemed | feels | felt | looks | looked | sounds | becomes | became | remains
DEG: | | | really | quite | rather | particularly | so | very | at times | to say the least | from the start
DEGA: | | really | truly | very | rather
DEGN: | | real | true | total | complete | genuine
USUAL: simple | common | typical | normal | standard | regular
WHO: i | i | we | we | my brother | my sister | my wife | my neighbor | the critics | a friend | our group
WHO: most viewers | some people | the crowd | everyone | the students | the children
AUDIENCE: families | teenagers | fans | my parents | the whole family | people like us | adults
WHEN: monday | friday | sunday | a rainy day | the first night | the weekend | a later viewing
HAPPENS: goes on for hours | begins in PLACE | ends in PLACE | moves from PLACE to PLACE | changes halfway
HAPPENS: takes a while | follows TRADE | comes back in the last act | lasts NUMBER minutes | stays in PLACE
HAPPENS: was shown on WHEN | deals with TRADE | returns to PLACE | belongs to NAME
PLACE: paris | a village | the desert | new york | a hotel | the suburbs | a hospital | the mountains | space
PLACE: a factory | berlin | a submarine | the city | a farm | london | a train | the jungle
TRADE: a lawyer | a doctor | a young couple | a teacher | two sisters | a soldier | a detective | a farmer
TRADE: a pianist | a widow | the mayor | a thief | a nurse | a boxer | some tourists
NAME: keller | moreno | the lead actor | the lead actress | tanaka | brandt | the director | lopez | novak
NAME: the writer | rossi | the young star | larsen | dubois | the narrator | petrov
NUMBER: two | three | ninety | eighty | twelve | twenty | forty | sixty | a hundred | thirty
"""


def _grammar(rules: str) -> dict[str, tuple[str, ...]]:
    """Symbol -> what it can become, one of them at random; lines of one symbol add up."""
    grammar: dict[str, tuple[str, ...]] = {}
    for line in rules.strip().splitlines():
        symbol, _, options = line.partition(":")
        grammar[symbol] = grammar.get(symbol, ()) + tuple(option.strip() for option in options.split("|"))
    return grammar


GRAMMAR = _grammar(RULES_OF_GRAMMAR)
