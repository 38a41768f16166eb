"""The cost of training: each step side by side with PyTorch's and JAX's, and the time to accuracy.

`matrix` measures steps of many sizes, `accuracy` the seconds until a task is solved; `page` and
`picture` show both. `timing` takes turns and forms ratios. Absolute times move with the machine;
only ratios taken in one run count.
"""
