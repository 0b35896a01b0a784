"""Filecoin's circuits as templates: what constrains, and programs that tell a witness generator the values.

program, template        what a template is: slots, rows, operations
  recorder               writes one down
bits, sha256, poseidon   gadgets, in the reference's order of rows and variables
  gadgets
library                  templates by what records them, each made once
assembly                 placements of templates, ports bound: a header or a unit
  paths                  Merkle paths
porep, post, update      the circuits
  catalogue              that of a registered proof type
circuit                  header and units: sizes, densities, rows in their places
  matrices               the rows written out
  r1cs_hash              the hash of bellpepper's TestConstraintSystem
  store                  circuits kept on disk
"""
