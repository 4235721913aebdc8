"""Rounds of random work and random faults against a real server (`make soak ROUNDS=n`).

Each round gives a server work of all kinds, harms it at a random moment, and then checks that
nothing is lost and nothing is untrue. `rounds` says what happens in one, `checks` what must hold
after it. A round is told by its number and the seed of its world, so that it can be tried again.
"""
