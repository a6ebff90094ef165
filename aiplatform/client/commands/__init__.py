"""One file per noun; each has `add(nouns)`, which registers its verbs with the parser."""
