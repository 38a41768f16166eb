"""The sieve: which updates hold the far gradient in its safe range, and what corrects the others.

A *policy* is a pure decision, one file each: evidence in, decision out. It sees numbers only, never
weights, tensors or a loop. `gradsieve.training` and `gradsieve.torch` are two adapters that gather
the evidence a policy asks for and carry out what it decides.

| policy   | file      | what it does                                                             |
|----------|-----------|--------------------------------------------------------------------------|
| `auto`   | auto.py   | as hold, from a plateau without reach until reach stays; otherwise looks |
| `hold`   | hold.py   | corrects every update that leaves slow Q outside its range               |
| `steer`  | steer.py  | the same by the Q of Eq. 14                                              |
| `select` | select.py | trains on the examples whose contribution leads back                     |
| `skip`   | skip.py   | leaves out minibatches: Algorithm 1 of the paper, as corrected           |

A new policy is a new file, and a line in `POLICIES` of settings.py.
"""

from gradsieve.sieve.corrections import Corrections
from gradsieve.sieve.evidence import Decision, Evidence, Need, Slope, Verdict
from gradsieve.sieve.learning import Learning
from gradsieve.sieve.policy import Policy
from gradsieve.sieve.reasons import Reason
from gradsieve.sieve.settings import POLICIES, Sieve
from gradsieve.sieve.stall import StallGuard

__all__ = [
    "Sieve",
    "Verdict",
    "Reason",
    "Policy",
    "Evidence",
    "Need",
    "Slope",
    "Decision",
    "Learning",
    "Corrections",
    "StallGuard",
    "POLICIES",
]
