"""What a policy is told of one recurrent module: Q, what the step did to it, and the slope of Q.

| file         | holds                                                                 |
|--------------|-----------------------------------------------------------------------|
| forward.py   | forward through a layer again, keeping what the deltas need           |
| local.py     | the derivatives of a cell's update at every step                      |
| recursion.py | the two linear recursions in time: gradients back, changes forward    |
| carrier.py   | γ, the gradient that arrived at each sequence's last step             |
| transport.py | the deltas of a stack of layers in both directions                    |
| change.py    | what an update does to the deltas                                     |
| ends.py      | sums over the near and the far end: S, dS and Eq. 14's Q              |
| slow.py      | slow Q                                                                |
| gather.py    | all calls of a module together                                        |
| slope.py     | ∂Q/∂w by double backward; tanh_slow.py has it of one tanh layer       |
"""
