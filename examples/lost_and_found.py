"""How a network that has learned is lost, and what going back saves.

Trains one network (not among the reported ten) on the multiplication problem over 200 steps as the
studies' arm `hold+identity+bent+growth+wide+rms+clip` does, without and with `retreat`.

retreats: how often the run went back.

Takes some five minutes.
"""

from dataclasses import replace

from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.methods import settings_of
from gradsieve.experiments.search import WIDE_IDENTITY
from gradsieve.training import run_one

CONFIG = RunConfig("multiplication", 200, "hold", 1014, 1e-3, clip=1.0, options=WIDE_IDENTITY)


def main() -> None:
    print("retreat  accuracy  updates  retreats")
    for retreat in (None, settings_of(CONFIG).retreat):
        settings = replace(settings_of(CONFIG), retreat=retreat, probe_every=0)
        run = run_one(CONFIG.initial_network(), CONFIG.problem(), settings)
        backs = sum(record.get("retreated", False) for record in run.history)
        print(
            f"{retreat or 'none':>7}  {run.test_accuracy:8.1%}  {run.updates:7}  {backs:8}",
            flush=True,
        )


if __name__ == "__main__":
    main()
