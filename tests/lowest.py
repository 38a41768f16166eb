"""The oldest versions that pyproject.toml allows, as pip's requirements: `make test-lowest`."""

import re
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
wanted = project["dependencies"] + [
    line for extra in sys.argv[1:] for line in project["optional-dependencies"][extra]
]
for line in wanted:
    name, least = re.fullmatch(r"([\w.-]+)>=([\d.]+)", line).groups()
    print(f"{name}=={least}")
