"""The paper's experiments and the ones that it should have had, by one command, resumable.

`config` says what one run is, `methods` what the arms are called, `runner` maps over runs on this
machine or a Ray cluster, `store` keeps their results, `search` finds rates and thresholds on other
networks than the reported ones. The studies are `table1`, `ablation`, `rescue`, `beyond`,
`agreement`, `figure1` and `figure2`; `record` is what is kept of them.
"""
