"""Finding a model's recurrent modules, and recording their calls and gradients.

| file         | holds                                                             |
|--------------|-------------------------------------------------------------------|
| cells.py     | descriptions of recurrent cells: tanh, GRU, LSTM …                |
| stack.py     | the recurrent modules of a model, by layer and direction          |
| listening.py | one forward hook for all recorders, held by weak references       |
| record.py    | the calls of a module, and the gradients that came back to them   |
| followed.py  | what a call of one of our own layers leaves behind                |
| sequences.py | a call in one shape: time first, padded, in the weights' precision |
"""
