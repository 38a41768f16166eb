"""A network that learns nothing, whatever its gradients are: there `auto` acts."""

from gradsieve.sieve import Learning


class Plateau(Learning):
    goes_on = False
    has_time = False
