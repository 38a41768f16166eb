"""The paper's experiments and further ones, by one command, resumable.

A study is one file: its arms, the runs that it needs (`plan`) and its output (`write`). `studies`
lists them. An arm is a recipe with a name and the settings that are searched (`search`). `ways`
has the recipes, `baselines` the additions that no recipe has. `config` describes one run,
`execute` computes its row, `runner` maps over runs on this machine or a Ray cluster, `store` keeps
the rows, `record` writes them as CSV, `older` reads the records of version 0.1.
"""
