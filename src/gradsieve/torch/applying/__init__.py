"""Carrying out what a policy decides around a PyTorch optimizer.

| file         | holds                                                                |
|--------------|----------------------------------------------------------------------|
| optimizer.py | `gst.Sieve`: look, step, decide, then keep, correct or take back     |
| wrapped.py   | an optimizer whose groups, state and defaults are another's          |
| look.py      | the evidence of one module, before and after the step                |
| snapshot.py  | everything that a step can change, to take it back bit for bit       |
| velocity.py  | momentum: what becomes of it when a step is left out or corrected    |
| successive.py | the cosine of a module's gradient with that of the step before      |
| remembered.py | what the sieve remembers from step to step, and how it is loaded    |
"""
