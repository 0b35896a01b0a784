"""Witnesses of Filecoin's circuits: from vanilla proofs to all wires, in the order that the Prover takes them.

data       what the readers give, as the sequences that the circuits' programs take
schedule   places of templates in waves: those of one wave depend on earlier waves only
assign     runs the programs
rows       values of the rows for given wires
system     the rows as a Prover takes them
"""
