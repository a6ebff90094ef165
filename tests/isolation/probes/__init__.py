"""Ways out, tried from inside a job: one function each, by subject. Standard library only.

Each answers by what really happened: a true value means possible. Nothing is harmed: what would be is a canary made for
the purpose, a value written back as it was, or an argument the kernel refuses after asking for rights.
"""
