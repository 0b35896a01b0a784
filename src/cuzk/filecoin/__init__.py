"""Filecoin's proofs: from what sealing software writes to Groth16 proofs in Filecoin's byte form."""
