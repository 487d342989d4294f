"""`heedful serve`: every run and every instance in the browser, and a playground.

stored/     runs, rows, texts and verdicts as they lie in files: only the columns and rows that a page needs
live/       what a page asks a model; leads to torch, and only when someone asks a model something
pages/      one address each: data -> page
question    a question to a model: its deadline, its end when nobody waits, and the queue in front of it
turns       whose question is worked on next, fair to clients
answer      a page or its JSON twin
guard       hosts, headers and sizes
app         all of it together
"""
