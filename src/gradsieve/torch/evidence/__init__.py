"""What a policy is told of one recurrent module: Q, what the step did to it, and the slope of Q.

| file         | holds                                                                   |
|--------------|-------------------------------------------------------------------------|
| forward.py   | forward through a layer again, where its outputs are not known          |
| carrier.py   | γ, the gradient that arrived at each sequence's last step               |
| layer.py     | what judging asks of one linearised layer; any cell, in Python          |
| local.py     | the derivatives of any cell's update at every step                      |
| recursion.py | the two linear recursions in time: gradients back, changes forward      |
| kernel_layer.py | the same for tanh, relu, GRU and LSTM in the kernel, and the adjoint |
| transport.py | a stack of layers in both directions: down with gradients, up with changes |
| change.py    | what an update does to the deltas                                       |
| ends.py      | sums over the near and the far end: S, dS and Eq. 14's Q                |
| slow.py      | slow Q                                                                  |
| gather.py    | all calls of a module together                                          |
| slope.py     | ∂Q/∂w by the kernel's adjoint                                           |
| double_backward.py | ∂Q/∂w of any cell, by autograd                                    |
"""
